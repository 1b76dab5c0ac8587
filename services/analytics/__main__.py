"""Run the job, or query its tables: `python -m services.analytics` or `spark-submit services/analytics/__main__.py`."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import click
from pyspark.sql import SparkSession

from services.analytics import delta, flags, job, preflight
from services.analytics import output as places
from services.analytics.failures import DONE, is_internal, told
from services.analytics.importing import dataset_of, import_output
from services.analytics.settings import Settings, SettingsError, check_spark
from services.analytics.spark import jars
from services.analytics.spark.ending import INTERRUPTED, Ending
from services.analytics.spark.session import settings_of_output, start
from services.analytics.sql import register, show
from services.analytics.tables import ALL
from services.kit.logs import JsonLines

log = logging.getLogger("services.analytics")
Begin = Callable[..., SparkSession]  # starts Spark for an output, with the flags SPARK

ONE_AT_A_TIME = (
    "let only one job at a time write to this bucket: Spark's commits there are safe within one job only; two jobs may "
    "overwrite each other's"
)
CONTEXT = {"auto_envvar_prefix": "PENSTOCK_ANALYTICS", "help_option_names": ["-h", "--help"]}


@click.group(context_settings=CONTEXT)
def analytics() -> None:
    """Analyse what happened in a store and what died, with Apache Spark and Delta Lake.

    Exit codes: 0 done, 1 failed, 2 usage or settings, 3 store unavailable or refusing, 4 another run changed the same
    tables, 130 Ctrl-C, 143 SIGTERM.
    """


@analytics.command("run", context_settings=CONTEXT)
@flags.added(flags.RUN)
def run_command(**given: Any) -> None:
    """Read samples and dead letters since the last run, compute the tables and write the report."""
    _log_json()
    given["run_id"] = given["run_id"] or f"{datetime.now(UTC):%Y-%m-%dT%H}"

    def work(begin: Begin) -> None:
        settings = Settings(**{flags.SETTINGS.get(name, name): value for name, value in given.items()})
        places.check(settings.output)
        if places.is_bucket(settings.output):
            log.warning(ONE_AT_A_TIME, extra={"action": "bucket"})
        seen = preflight.look(settings)
        spark = cache(partial(begin, settings.output, settings.master, settings.driver_memory, settings.conf))
        job.run(settings, seen, spark)
        while settings.continuous_s:
            time.sleep(settings.continuous_s)
            following = job.following(settings)
            job.run(following, preflight.look(following), spark)

    sys.exit(_carried_out(work))


@analytics.command("sql", context_settings=CONTEXT)
@flags.added((flags.OUTPUT, *flags.SPARK))
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="of the result",
)
@click.argument("query")
def sql_command(output: str, form: str, query: str, **spark_flags: Any) -> None:
    """Query the tables with Spark SQL.

    For example: penstock analytics sql --output ./analytics "SELECT * FROM deaths". SHOW TABLES lists the tables,
    DESCRIBE TABLE deaths explains the columns.
    """
    logging.basicConfig(level=logging.WARNING, format="penstock: %(message)s", force=True)

    def work(begin: Begin) -> None:
        spark = begin(output, **spark_flags)
        if not register(spark, output):
            raise SettingsError(f"output {output}: no tables there; `penstock analytics run` creates them")
        show(spark.sql(query), form)

    sys.exit(_carried_out(work))


@analytics.command("import", context_settings=CONTEXT)
@flags.added((flags.OUTPUT, *flags.SPARK))
@click.argument("old_output")
def import_command(output: str, old_output: str, **spark_flags: Any) -> None:
    """Import the output of a version without Delta tables, once; the next run continues where it ended."""
    _log_json()

    def work(begin: Begin) -> None:
        places.check(output)
        dataset_of(old_output)  # before Spark starts
        delta.create(output, ALL)
        spark = begin(output, **spark_flags)
        found = import_output(spark, old_output, output)
        log.info("import done", extra={"action": "imported", "rows": json.dumps(found)})

    sys.exit(_carried_out(work))


@analytics.command("jars")
def jars_command() -> None:
    """Install the Java archives of Delta Lake and S3 beside PySpark's, by version and hash."""
    sys.exit(jars.main())


def _carried_out(work: Callable[[Begin], None]) -> int:
    """Do the work and return the exit code; errors are logged. work: is given a function that starts Spark."""
    sessions: list[SparkSession] = []

    def begin(place: str, master: str, driver_memory: str, conf: tuple[str, ...]) -> SparkSession:
        ending.starting()
        spark = _started(place, master, driver_memory, conf)
        sessions.append(spark)
        ending.started(spark)
        return spark

    with Ending() as ending:
        try:
            work(begin)
        except KeyboardInterrupt:  # there is nothing to stop yet
            text = "interrupted during startup; Spark has done nothing"
            log.error(text, extra={"action": "failed", "code": INTERRUPTED})
            return INTERRUPTED
        except BrokenPipeError:  # the reader of the result has ended; Click does too
            raise
        except Exception as error:
            if ending.code:
                return ending.code
            code, text = told(error)
            cause = error if is_internal(error) else None
            log.error(text, extra={"action": "failed", "code": code}, exc_info=cause)
            return code
        finally:
            for spark in sessions:
                spark.stop()
        return ending.code or DONE


def _started(place: str, master: str, driver_memory: str, conf: tuple[str, ...]) -> SparkSession:
    check_spark(master, driver_memory, conf)
    if absent := jars.missing():
        raise SettingsError(
            f"Java archives of Delta Lake are missing ({absent[0]}, ...): run `penstock analytics jars`"
        )
    begin = time.monotonic()
    spark = start(master, driver_memory, conf, settings_of_output(place))
    of = {"master": spark.sparkContext.master, "seconds": round(time.monotonic() - begin, 3)}
    log.info("Spark started", extra={"action": "started", **of})
    return spark


def _log_json() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines({}))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for talkative in ("py4j", "matplotlib"):
        logging.getLogger(talkative).setLevel(logging.WARNING)


if __name__ == "__main__":
    analytics()
