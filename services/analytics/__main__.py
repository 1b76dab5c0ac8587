"""`python -m services.analytics`, or `spark-submit services/analytics/__main__.py`: one run of the job."""

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
from services.analytics.losses import DataLoss
from services.analytics.options import OptionError
from services.analytics.places import NoOutput, OutputError, check
from services.analytics.planning import LaxerPlan, OtherStore
from services.analytics.report.output import ReportRefused, give
from services.analytics.run import run
from services.analytics.session import start
from services.analytics.settings import SHAPES, TIMES_S, Settings, SettingsError, Shape
from services.kit.logs import JsonLines
from services.store.model import NotInitialised, StoreError, StoreUnavailable

DONE, FAILED, USAGE, UNAVAILABLE, LOCKED = range(5)
OWN = re.compile(
    r"^services\.[\w.]+\.\w+: (.+)$", re.MULTILINE
)  # an error of ours in the traceback of a task
TOLD = 2000  # characters of what went wrong inside of Spark
NO_JAVA = (
    "Java did not start; the lines before this one say why: it has to be 17 or newer (JAVA_HOME, PATH), and the "
    "machine has to have the memory that --driver-memory {} asks for"
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
    "--run-id", default=None, help="name of the run: one that is done is not done again  [default: hour, UTC]"
)
@click.option(
    "--bodies", default="none", show_default=True, help="none, full, or octets of each that are archived"
)
@click.option(
    "--redact",
    multiple=True,
    help="pattern (RE2); what it matches in bodies, attributes, errors, notes is not archived",
)
@click.option("--late-hours", type=click.IntRange(*SHAPES["late_hours"]), default=48, show_default=True)
@click.option(
    "--retention-days",
    type=click.IntRange(*SHAPES["retention_days"]),
    default=0,
    show_default=True,
    help="0: for ever",
)
@click.option("--week-days", type=click.IntRange(*SHAPES["week_days"]), default=7, show_default=True)
@click.option("--top", type=click.IntRange(*SHAPES["top"]), default=50, show_default=True)
@click.option("--objective", type=float, default=0.999, show_default=True)
@click.option("--report-hours", type=click.IntRange(*SHAPES["report_hours"]), default=24, show_default=True)
@click.option(
    "--clock-slack",
    type=click.IntRange(*SHAPES["clock_slack_s"]),
    default=3600,
    show_default=True,
    help="seconds",
)
@click.option("--fail-on-data-loss/--no-fail-on-data-loss", default=True, show_default=True)
@click.option(
    "--accept-clock", is_flag=True, help="the store's clock is right, however far it is from others"
)
@click.option(
    "--accept-store", is_flag=True, help="another store than before: it is read into the same tables"
)
@click.option(
    "--master", default="", help="as Spark has it  [default: what spark-submit says, else local[*]]"
)
@click.option("--driver-memory", default="2g", show_default=True)
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="further settings of Spark")
@click.option("--lock-s", type=click.FloatRange(*TIMES_S["lock_s"]), default=120.0, show_default=True)
@click.option("--patience-s", type=click.FloatRange(*TIMES_S["patience_s"]), default=30.0, show_default=True)
def analytics(run_id: str | None, **told: Any) -> None:
    """Archive samples and dead letters since the last run, compute what happened, and report it.

    Exit codes: 0 done, 1 failed, 2 usage or settings, 3 the store is away or refuses, 4 another run is at work,
    130 Ctrl-C, 143 SIGTERM.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines({}))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for talkative in ("py4j", "matplotlib"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    sys.exit(carried_out(run_id or datetime.now(UTC).strftime("%Y-%m-%dT%H"), told))


def carried_out(run_id: str, told: dict[str, Any]) -> int:
    """The exit code; what was wrong is logged."""
    ending: Ending | None = None
    try:
        settings = _settings(run_id, told)
        check(settings.output)
        starting = Starting()
        spark = _started(settings)
        ending = Ending(spark)
        if starting.is_asked:  # looked at again once the signal is the other's
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
        return _failed(UNAVAILABLE, f"the store: {error}")
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
    except KeyboardInterrupt:  # before there is anything to be stopped
        return _failed(INTERRUPTED, "told to end while it started: nothing is begun")
    except Exception as error:  # noqa: BLE001 - whatever it was, the last line says it
        text = f"{type(error).__name__}: {error}: a fault of this program; the next run begins where this one ended"
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
    """The exit code, if Spark was stopped as a signal asked for it."""
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
    """What our own tasks said, where it was one of them; else the beginning, and every line that names a cause."""
    if own := dict.fromkeys(match[1].strip() for match in OWN.finditer(text)):
        return " | ".join(own)[:TOLD]
    causes = [line.strip() for line in text.splitlines() if "Caused by" in line or "Error: " in line]
    return " | ".join([text.splitlines()[0] if text else "Spark failed", *dict.fromkeys(causes)])[:TOLD]


def _failed(code: int, text: str, error: Exception | None = None) -> int:
    """error: is told with its traceback."""
    log.error(text, extra={"action": "failed", "code": code}, exc_info=error)
    return code


if __name__ == "__main__":
    analytics()
