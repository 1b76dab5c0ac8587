"""Run the job once: read the store into bronze, compute gold, maintain the tables, note the run, write the report.

Each step can be repeated: a run that was killed anywhere is continued by the next one, by the checkpoints of the
streaming queries and the logs of the Delta tables.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from services.analytics import delta, maintenance, preflight, runs
from services.analytics.bronze.ingest import ingest
from services.analytics.bronze.log import all_hours
from services.analytics.gold.rewrite import Scope, rewrite
from services.analytics.hours import HOUR_MS, condition, hour_at
from services.analytics.preflight import KINDS, Seen
from services.analytics.report.figures import Of, make
from services.analytics.report.output import give, prune, write_reports
from services.analytics.report.period import read_tables
from services.analytics.runs import Counted, Run
from services.analytics.settings import Settings
from services.analytics.spark.replacing import replace_rows
from services.analytics.tables import ALL, BRONZE, QUARANTINE, Table
from services.redis_stream.schema import Kind

log = logging.getLogger(__name__)


def following(settings: Settings) -> Settings:
    """Return the settings of the next run of a process that repeats it: another name, and no flags for one run."""
    name = f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    return replace(settings, run=name, accept_clock=False, accept_store=False, recompute=False)


def run(settings: Settings, seen: Seen, spark: Callable[[], SparkSession]) -> None:
    """Run the job once.

    Args:
        settings: All settings.
        seen: The store at the beginning of the run.
        spark: Returns the session; called once there is work for Spark.

    Raises:
        OtherStore, ClockWrong, DataLoss, StoreError, OutputError, TableError, PySparkException.
    """
    delta.create(settings.output, ALL)
    if runs.is_done(settings.output, settings.run) and not settings.recompute:
        log.info("this run is already done", extra={"action": "nothing", "run": settings.run})
    else:
        Job(settings, seen, spark).run()
    give(settings.output, settings.store, settings.patience_s)


class Job:
    """One run."""

    def __init__(self, settings: Settings, seen: Seen, spark: Callable[[], SparkSession]) -> None:
        self._settings = settings
        self._seen = seen
        self._spark = spark
        self._output = settings.output
        self._seconds: dict[str, float] = {}

    def run(self) -> None:
        """Carry out all steps; those that have nothing to do do not start Spark."""
        previous = runs.last(self._output)
        lost = preflight.compare(self._settings, self._seen, runs.before(previous))
        for kind in KINDS:
            if self._has_new(kind, previous):
                with self._step(f"ingest_{kind}"):
                    ingest(self._spark(), self._settings, kind, self._seen)
        counted = Counted(self._output, previous)
        with self._step("gold"):
            self._compute(counted, previous)
        if (newest := runs.last(self._output)) != previous:  # another job has ended: its rows count once
            computed, previous, counted = counted.known, newest, Counted(self._output, newest)
            counted.known |= computed
        row = self._row(counted, previous, len(lost))
        is_maintained = False
        if maintenance.is_due(runs.last_maintained_ms(self._output), self._seen.now_ms):
            with self._step("maintenance"):
                self._maintain(counted, previous.number if previous else 0)
            is_maintained = True
        with self._step("report"):
            self._report(row)
        row = replace(row, is_maintained=is_maintained, known=counted.known, seconds=self._seconds)
        runs.append(self._output, row)
        log.info("run done", extra={"action": "done", "summary": json.dumps(row.shown())})

    def _has_new(self, kind: Kind, previous: Run | None) -> bool:
        """Return whether the store has entries of this kind that no run has read that ended."""
        known = previous.ends if previous and previous.dataset == self._seen.dataset else {}
        return any(known.get(key) != end for key, end in self._seen.ends(kind).items())

    def _row(self, counted: Counted, previous: Run | None, lost: int) -> Run:
        read = {kind: counted.new[kind].rows for kind in KINDS}
        bad = {kind: counted.quarantined(kind) for kind in KINDS}
        gone = {kind: runs.missing(self._seen, previous, kind, read[kind]) for kind in KINDS}
        return Run(
            run=self._settings.run,
            number=previous.number + 1 if previous else 1,
            dataset=self._seen.dataset,
            now_ms=self._seen.now_ms,
            dead=read[Kind.DEAD],
            dead_quarantined=bad[Kind.DEAD],
            dead_gone=gone[Kind.DEAD],
            samples=read[Kind.SAMPLES],
            samples_quarantined=bad[Kind.SAMPLES],
            samples_lost=gone[Kind.SAMPLES],
            streams_lost=lost,
            is_maintained=False,
            ends={key: place.last for key, place in self._seen.streams.items()},
            added={key: place.added for key, place in self._seen.streams.items()},
            known=counted.known,
            seconds=self._seconds,
        )

    def _compute(self, counted: Counted, previous: Run | None) -> None:
        """Write what new rows of bronze change."""
        for kind in KINDS:
            self._quarantine(kind, counted.new[kind].unreadable)
        touched = {kind: counted.new[kind].hours for kind in KINDS}
        if self._settings.recompute:
            touched = {kind: all_hours(self._output, BRONZE[kind]) for kind in KINDS}
        # hours that have ended since the last run are judged
        is_later = previous is not None and hour_at(previous.now_ms) < hour_at(self._seen.now_ms)
        if is_later or any(touched.values()):
            self._rewrite(touched)

    def _quarantine(self, kind: Kind, hours: Collection[str]) -> None:
        """Copy the unreadable rows of some hours."""
        if not hours:
            return
        where = condition(hours)
        bad = f"{where} AND problem IS NOT NULL"
        replace_rows(
            lambda: delta.read(self._spark(), self._output, BRONZE[kind]).where(bad),
            self._path(QUARANTINE[kind]),
            where,
        )

    def _rewrite(self, touched: Mapping[Kind, Collection[str]]) -> None:
        own, now_ms = self._settings, self._seen.now_ms
        first = maintenance.first_day(own, now_ms)
        scope = Scope(now_ms, own.top, own.objective, own.week_days, own.report_hours, first)
        rewrite(self._spark, self._output, touched, scope)

    def _maintain(self, counted: Counted, newest: int) -> None:
        maintenance.maintain(self._settings, self._seen.now_ms, newest)
        for kind in KINDS:
            counted.settle(kind)

    def _report(self, row: Run) -> None:
        settings = self._settings
        # the end of the period is the newest hour with rows, which may be older
        period_ms = 2 * settings.report_hours * HOUR_MS
        missing = [*runs.missing_since(settings.output, row.now_ms - period_ms), row.missing()]
        tables = read_tables(settings.output, hour_at(row.now_ms), settings.report_hours)
        report = make(tables, Of(row.run, row.now_ms, settings.objective, row.records(), missing))
        write_reports(settings.output, report, row.run)
        prune(settings.output, maintenance.first_day(settings, row.now_ms))

    def _path(self, table: Table) -> str:
        return delta.path(self._output, table)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self._seconds[name] = round(time.monotonic() - begin, 3)
        log.info("step done", extra={"action": "step", "step": name, "seconds": self._seconds[name]})
