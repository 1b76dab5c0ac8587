"""Define the flags of the job, and refuse removed ones with what replaces them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from services.analytics.settings import BOUNDS

STORE = ["PENSTOCK_ANALYTICS_STORE", "PENSTOCK_STORE__URL", "REDIS_URL"]
# names of flags that differ from those of `Settings`
SETTINGS = {
    "run_id": "run",
    "fail_on_data_loss": "fail_on_loss",
    "clock_slack": "clock_slack_s",
    "continuous": "continuous_s",
}
REMOVED = {
    "--late-hours": "late records now change their hours however late they are; remove the flag",
    "--lock-s": "Delta Lake's commits replace the lock; remove the flag",
}


def _number(name: str, default: Any, text: str, setting: str) -> Callable[..., Any]:
    least, most = BOUNDS[setting]
    kind: Any = click.FloatRange(least, most)
    if isinstance(default, int):
        kind = click.IntRange(int(least), int(most))
    return click.option(name, type=kind, default=default, show_default=True, help=text)


SPARK = (
    click.option("--master", default="", help="Spark master  [default: that of spark-submit, else local[*]]"),
    click.option(
        "--driver-memory", default="2g", show_default=True, help="heap of the driver, as for Java's -Xmx"
    ),
    click.option("--conf", multiple=True, metavar="NAME=VALUE", help="additional Spark setting; repeatable"),
)
OUTPUT = click.option("--output", required=True, help="folder or s3a://bucket/path")
RUN = (
    click.option("--store", envvar=STORE, required=True, help="URL of the store"),
    OUTPUT,
    click.option(
        "--run-id",
        default=None,
        help="name of the run; a run that is done is not repeated  [default: hour, UTC]",
    ),
    click.option(
        "--bodies",
        default="none",
        show_default=True,
        help="how much of each body is kept: none, full, or a number of octets",
    ),
    click.option(
        "--redact",
        multiple=True,
        help="pattern (RE2) that is removed from bodies, attributes, errors and notes; repeatable",
    ),
    _number("--retention-days", 0, "remove days older than this; 0: keep them", "retention_days"),
    _number("--week-days", 7, "days of history that sudden changes are compared with", "week_days"),
    _number("--top", 50, "rows per queue and hour in the tables origins and failures", "top"),
    click.option(
        "--objective", type=float, default=0.999, show_default=True, help="share of puts to be accepted"
    ),
    _number("--report-hours", 24, "hours that the report covers", "report_hours"),
    _number(
        "--clock-slack",
        3600,
        "seconds that the time of a record may be ahead of the store's clock",
        "clock_slack_s",
    ),
    click.option(
        "--fail-on-data-loss/--no-fail-on-data-loss",
        default=True,
        show_default=True,
        help="stop if entries are lost before they are read",
    ),
    click.option(
        "--accept-clock", is_flag=True, help="trust the store's clock even if it differs from others"
    ),
    click.option(
        "--accept-store",
        is_flag=True,
        help="accept another store than before and read it into the same tables",
    ),
    click.option(
        "--recompute",
        is_flag=True,
        help="compute the tables of all hours, not only of those with new records",
    ),
    *SPARK,
    _number("--patience-s", 30.0, "seconds to retry a store that is unavailable", "patience_s"),
    _number(
        "--maintenance-s",
        120.0,
        "seconds after which OPTIMIZE, and VACUUM, begin no further step",
        "maintenance_s",
    ),
    _number(
        "--continuous", 0.0, "repeat the run every so many seconds until stopped; 0: run once", "continuous_s"
    ),
)


def added(options: tuple[Callable[..., Any], ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options to a command, and the removed ones, which are refused."""
    removed = [
        click.option(name, hidden=True, expose_value=False, callback=_refuse, default=None)
        for name in REMOVED
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed((*options, *removed)):
            command = option(command)
        return command

    return decorate


def _refuse(_context: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None:
        name = option.opts[0]
        raise click.UsageError(f"{name} is no longer a flag: {REMOVED[name]}")
