"""Run the job once: `python -m services.analytics` or `spark-submit services/analytics/__main__.py`."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from services.analytics.clocks import ClockWrong
from services.analytics.ending import INTERRUPTED, Ending, Starting
from services.analytics.files import Files
from services.analytics.lock import Locked
from services.analytics.places import NoOutput, OutputError, check
from services.analytics.planning import LaxerPlan, OtherStore
from services.analytics.report.output import ReportRefused, give
from services.analytics.run import run
from services.analytics.session import start
from services.analytics.settings import SHAPES, TIMES_S, Settings, SettingsError, Shape
from services.kit.logs import JsonLines
from services.redis_stream.losses import DataLoss
from services.redis_stream.options import OptionError
from services.store.model import NotInitialised, StoreError, StoreUnavailable

DONE, FAILED, USAGE, UNAVAILABLE, LOCKED = range(5)
# an error of ours in the traceback of a task
OWN = re.compile(r"^services\.[\w.]+\.\w+: (.+)$", re.MULTILINE)
TOLD = 2000  # characters of an error inside of Spark
NO_JAVA = (
    "Java did not start; see the lines above for the cause. Java 17 or newer is required (JAVA_HOME, PATH), and the "
    "machine needs the memory that --driver-memory {} asks for"
)
log = logging.getLogger("services.analytics")


@click.command(
    context_settings={"auto_envvar_prefix": "PENSTOCK_ANALYTICS", "help_option_names": ["-h", "--help"]}
)
@click.option(
    "--store", envvar=["PENSTOCK_ANALYTICS_STORE", "PENSTOCK_STORE__URL", "REDIS_URL"], required=True
)
@click.option("--output", required=True, help="folder or s3a://bucket/path")
@click.option(
    "--run-id", default=None, help="name of the run; a run that is done is not repeated  [default: hour, UTC]"
)
@click.option(
    "--bodies",
    default="none",
    show_default=True,
    help="how much of each body is archived: none, full, or a number of octets",
)
@click.option(
    "--redact",
    multiple=True,
    help="pattern (RE2) that is removed from archived bodies, attributes, errors and notes; repeatable",
)
@click.option(
    "--late-hours",
    type=click.IntRange(*SHAPES["late_hours"]),
    default=48,
    show_default=True,
    help="hours that late records may still change, before the newest hour",
)
@click.option(
    "--retention-days",
    type=click.IntRange(*SHAPES["retention_days"]),
    default=0,
    show_default=True,
    help="remove data older than this; 0: keep it",
)
@click.option(
    "--week-days",
    type=click.IntRange(*SHAPES["week_days"]),
    default=7,
    show_default=True,
    help="days of history that sudden changes are compared with",
)
@click.option(
    "--top",
    type=click.IntRange(*SHAPES["top"]),
    default=50,
    show_default=True,
    help="rows per queue and hour in the tables origins and failures",
)
@click.option(
    "--objective", type=float, default=0.999, show_default=True, help="share of puts to be accepted"
)
@click.option(
    "--report-hours",
    type=click.IntRange(*SHAPES["report_hours"]),
    default=24,
    show_default=True,
    help="hours that the report covers",
)
@click.option(
    "--clock-slack",
    type=click.IntRange(*SHAPES["clock_slack_s"]),
    default=3600,
    show_default=True,
    help="seconds that the time of a record may be ahead of the store's clock",
)
@click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss",
    default=True,
    show_default=True,
    help="stop if entries are lost before they are read",
)
@click.option("--accept-clock", is_flag=True, help="trust the store's clock even if it differs from others")
@click.option(
    "--accept-store", is_flag=True, help="accept another store than before and read it into the same tables"
)
@click.option("--master", default="", help="Spark master  [default: that of spark-submit, else local[*]]")
@click.option(
    "--driver-memory", default="2g", show_default=True, help="heap of the driver, as for Java's -Xmx"
)
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="additional Spark setting; repeatable")
@click.option(
    "--lock-s",
    type=click.FloatRange(*TIMES_S["lock_s"]),
    default=120.0,
    show_default=True,
    help="seconds after which a lock that is not renewed expires",
)
@click.option(
    "--patience-s",
    type=click.FloatRange(*TIMES_S["patience_s"]),
    default=30.0,
    show_default=True,
    help="seconds to retry a store that is unavailable",
)
def analytics(run_id: str | None, **told: Any) -> None:
    """Archive samples and dead letters since the last run, compute the tables and write the report.

    Exit codes: 0 done, 1 failed, 2 usage or settings, 3 store unavailable or refusing, 4 another run is active,
    130 Ctrl-C, 143 SIGTERM.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines({}))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for talkative in ("py4j", "matplotlib"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    sys.exit(carried_out(run_id or datetime.now(UTC).strftime("%Y-%m-%dT%H"), told))


def carried_out(run_id: str, told: dict[str, Any]) -> int:
    """Run the job and return the exit code; errors are logged."""
    ending: Ending | None = None
    try:
        settings = _settings(run_id, told)
        check(settings.output)
        starting = Starting()
        spark = _started(settings)
        ending = Ending(spark)
        if starting.is_asked:  # checked again after Ending has taken over the signal
            spark.stop()
            raise KeyboardInterrupt
        try:
            summary = run(spark, settings)
            give(Files(settings.output), settings)
        finally:
            spark.stop()
    except (SettingsError, OptionError, NoOutput) as error:
        return _failed(USAGE, str(error))
    except Locked as error:
        return _failed(LOCKED, str(error))
    except (StoreUnavailable, NotInitialised) as error:
        return _failed(UNAVAILABLE, f"store: {error}")
    except ReportRefused as error:
        return _failed(UNAVAILABLE, str(error))
    except (OutputError, ClockWrong, OtherStore, LaxerPlan, DataLoss, StoreError) as error:
        return _failed(_given_up(ending) or FAILED, str(error))
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if code := _given_up(ending):
            return code
        if "JAVA_GATEWAY_EXITED" in text:
            return _failed(FAILED, NO_JAVA.format(told["driver_memory"]))
        return _failed(UNAVAILABLE if "StoreUnavailable" in text else FAILED, _told(text))
    except KeyboardInterrupt:  # there is nothing to stop yet
        return _failed(INTERRUPTED, "interrupted during startup; no work was started")
    except Exception as error:  # noqa: BLE001 - the last line must name any error
        text = (
            f"internal error: {type(error).__name__}: {error}; the next run continues where this one stopped"
        )
        return _given_up(ending) or _failed(FAILED, text, error)
    log.info("run done", extra={"action": "done", "summary": json.dumps(summary)})
    return DONE


def _started(settings: Settings) -> SparkSession:
    begin = time.monotonic()
    spark = start(settings.master, settings.driver_memory, settings.conf)
    seconds = round(time.monotonic() - begin, 3)
    of = {"master": spark.sparkContext.master, "seconds": seconds}
    log.info("Spark started", extra={"action": "started", **of})
    return spark


def _given_up(ending: Ending | None) -> int:
    """Return the exit code if a signal stopped Spark, otherwise 0."""
    return ending.code if ending else 0


def _settings(run_id: str, told: dict[str, Any]) -> Settings:
    shape = Shape(
        bodies=told["bodies"],
        redact=tuple(told["redact"]),
        late_hours=told["late_hours"],
        retention_days=told["retention_days"],
        week_days=told["week_days"],
        top=told["top"],
        objective=told["objective"],
        report_hours=told["report_hours"],
        clock_slack_s=told["clock_slack"],
        fail_on_loss=told["fail_on_data_loss"],
    )
    names = ("store", "output", "master", "driver_memory", "lock_s", "patience_s")
    own = {name: told[name] for name in (*names, "accept_clock", "accept_store")}
    return Settings(run=run_id, shape=shape, conf=tuple(told["conf"]), **own)


def _told(text: str) -> str:
    """Return the errors of our own tasks; without one, the first line and every line that names a cause."""
    if own := dict.fromkeys(match[1].strip() for match in OWN.finditer(text)):
        return " | ".join(own)[:TOLD]
    causes = [line.strip() for line in text.splitlines() if "Caused by" in line or "Error: " in line]
    return " | ".join([text.splitlines()[0] if text else "Spark failed", *dict.fromkeys(causes)])[:TOLD]


def _failed(code: int, text: str, error: Exception | None = None) -> int:
    """Log a failure, with the traceback of `error` if given, and return the exit code."""
    log.error(text, extra={"action": "failed", "code": code}, exc_info=error)
    return code


if __name__ == "__main__":
    analytics()
