"""Define the flags of the job, and refuse removed ones with what replaces them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from services.analytics.settings import BOUNDS, Settings

STORE = ["PENSTOCK_ANALYTICS_STORE", "PENSTOCK_STORE__URL", "REDIS_URL"]
# names of flags that differ from those of `Settings`
SETTINGS = {
    "run_id": "run",
    "fail_on_data_loss": "fail_on_loss",
    "clock_slack": "clock_slack_s",
    "continuous": "continuous_s",
}
DEFAULTS = {each.name: each.default for each in fields(Settings)}
REMOVED = {
    "--late-hours": "late records now change their hours however late they are; remove the flag",
    "--lock-s": "Delta Lake's commits replace the lock; remove the flag",
}


def _flag(name: str, text: str) -> Callable[..., Any]:
    """Return a flag with the default and the bounds of its setting."""
    word = name.removeprefix("--").replace("-", "_")
    setting = SETTINGS.get(word, word)
    default, kind = DEFAULTS[setting], None
    if setting in BOUNDS:
        least, most = BOUNDS[setting]
        is_whole = isinstance(default, int)
        kind = click.IntRange(int(least), int(most)) if is_whole else click.FloatRange(least, most)
    return click.option(name, type=kind, default=default, show_default=True, help=text)


SPARK = (
    click.option("--master", default="", help="Spark master  [default: that of spark-submit, else local[*]]"),
    _flag("--driver-memory", "heap of the driver, as for Java's -Xmx"),
    click.option("--conf", multiple=True, metavar="NAME=VALUE", help="additional Spark setting; repeatable"),
)
OUTPUT = click.option("--output", required=True, help="folder or s3a://bucket/path")
RUN = (
    click.option("--store", envvar=STORE, required=True, help="URL of the store"),
    OUTPUT,
    click.option(
        "--run-id", help="name of the run; a run that is done is not repeated  [default: hour, UTC]"
    ),
    _flag("--bodies", "how much of each body is kept: none, full, or a number of octets"),
    click.option(
        "--redact",
        multiple=True,
        help="pattern (RE2) that is removed from bodies, attributes, errors and notes; repeatable",
    ),
    _flag("--retention-days", "remove days older than this; 0: keep them"),
    _flag("--week-days", "days of history that sudden changes are compared with"),
    _flag("--top", "rows per queue and hour in the tables origins and failures"),
    _flag("--objective", "share of puts to be accepted"),
    _flag("--report-hours", "hours that the report covers"),
    _flag("--clock-slack", "seconds that the time of a record may be ahead of the store's clock"),
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
    _flag("--patience-s", "seconds to retry a store that is unavailable"),
    _flag("--maintenance-s", "seconds after which OPTIMIZE, and VACUUM, begin no further step"),
    _flag("--continuous", "repeat the run every so many seconds until stopped; 0: run once"),
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
