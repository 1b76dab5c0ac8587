"""Run the job once: finish an earlier run, make a plan, stage everything, publish everything.

A run killed at any moment leaves either a plan, which the next run carries out again from its beginning, or a list of
moves, which the next run continues. Only what is in a plan is read; only what is in such a list becomes visible.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from services.analytics import publish
from services.analytics.archive import Written, archive
from services.analytics.begun import begin, read_begun
from services.analytics.compaction import compact, expired
from services.analytics.compute import Compute
from services.analytics.files import Files
from services.analytics.hour_files import folder_of
from services.analytics.lock import Lock
from services.analytics.missing import of_runs as missing_of_runs
from services.analytics.missing import with_run
from services.analytics.plan import KINDS, Plan
from services.analytics.planning import check_shape, check_store, freeze, with_retention
from services.analytics.publish import Move, Ready, read_state
from services.analytics.report.output import staged_report
from services.analytics.report.period import Gone
from services.analytics.settings import Settings
from services.analytics.state import State
from services.analytics.summaries import Summaries
from services.analytics.tables import AGGREGATES
from services.redis_stream.schema import Kind

log = logging.getLogger(__name__)


class Run:
    """The execution of one plan."""

    def __init__(
        self, spark: SparkSession, files: Files, settings: Settings, plan: Plan, ended: Summaries
    ) -> None:
        self._spark = spark
        self._files = files
        self._settings = settings
        self._plan = plan
        self._ended = ended
        self._staging = publish.staging(plan.run)
        self._seconds: dict[str, float] = {}

    def stage(self) -> Ready:
        """Stage everything, and return what is left to publish."""
        self._files.delete(self._staging)
        written = {}
        for kind in KINDS:
            with self._step(f"archive_{kind}"):
                folder = f"{self._staging}/archive/{kind}"
                written[kind] = archive(self._spark, self._settings, self._plan, kind, folder)
        compute = Compute(self._spark, self._files, self._plan, self._staging, written)
        with self._step("aggregates"):
            compute.write_all()
        moves, removals = self._moves_of_archive(written), compute.emptied()
        with self._step("compaction"):
            for kind in KINDS:
                moves, old = compact(
                    self._spark, self._files, compute, self._plan, self._staging, kind, moves
                )
                removals += old
        moves += self._moves_of_aggregates()
        first, expired_folders = expired(self._files, self._ended, self._plan)
        summary = self._summary(written, compute, first)
        state = self._state(compute, summary)
        kept = [move for move in moves if not hour_of(move[1]) or hour_of(move[1]) >= first]
        with self._step("report"):
            records = {str(kind): summary[str(kind)] for kind in KINDS}
            gone = Gone(first, frozenset(removals))
            kept += staged_report(self._files, self._plan, self._staging, gone, records, state.missing or {})
        return Ready(self._plan.run, kept, [*removals, *expired_folders], state, summary)

    def _moves_of_archive(self, written: dict[Kind, Written]) -> list[Move]:
        root = f"{self._staging}/archive"
        return [
            move for kind, each in written.items() for move in archive_moves(self._plan.run, root, kind, each)
        ]

    def _moves_of_aggregates(self) -> list[Move]:
        root = f"{self._staging}/aggregates"
        return [
            (
                source,
                f"aggregates/{table.name}/{source.split('/')[-3]}/{source.split('/')[-2]}/{table.name}.parquet",
            )
            for table in AGGREGATES
            for source in self._files.walk(f"{root}/{table.name}")
        ]

    def _state(self, compute: Compute, summary: dict[str, Any]) -> State:
        streams, newest = self._plan.streams, max(compute.new, default="")
        before = read_state(self._files)
        missing = before.missing
        if missing is None:
            missing = missing_of_runs(self._files, self._ended)
        of_hours = before.hours_after(self._plan.now_ms, compute.hours, compute.skipped(), newest)
        return State(
            last_run=self._plan.run,
            dataset=self._plan.dataset,
            **of_hours,
            streams={key: each.end for key, each in streams.items()},
            added={key: each.added for key, each in streams.items()},
            missing=with_run(missing, summary),
        )

    def _summary(self, written: dict[Kind, Written], compute: Compute, first: str) -> dict[str, Any]:
        """Return the summary of the run. first: the first hour that is kept."""
        if late := compute.late(first):
            log.warning(
                "late records are archived but not in the tables of their hours",
                extra={"action": "late", "records": late, "hours": len(compute.skipped())},
            )
        return {
            "version": 1,
            "run": self._plan.run,
            "now_ms": self._plan.now_ms,
            **{str(kind): counts(self._plan, kind, written[kind]) for kind in KINDS},
            "lost_streams": self._plan.lost_streams,
            "late": late,
            "hours": compute.hours,
            "seconds": self._seconds,
        }

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self._seconds[name] = round(time.monotonic() - begin, 3)
        log.info("step done", extra={"action": "step", "step": name, "seconds": self._seconds[name]})


def counts(plan: Plan, kind: Kind, written: Written) -> dict[str, int]:
    """Return the counts of a kind; read = archived + quarantined.

    `lost` samples were trimmed before they were read; `gone` dead letters were redriven or removed before.
    """
    expected = [each.expected for each in plan.streams.values() if each.kind is kind]
    missing = max(0, sum(each for each in expected if each > 0) - written.read)
    return {
        "read": written.read,
        "archived": written.read - written.quarantined,
        "quarantined": written.quarantined,
        "lost" if kind is Kind.SAMPLES else "gone": missing,
    }


def archive_moves(run: str, staged: str, kind: Kind, written: Written) -> list[Move]:
    """Return the moves of staged files to their hours, or to the quarantine; names contain the run."""
    moves: list[Move] = []
    numbers: dict[str, int] = {}
    for file in written.files:
        number = numbers[file.hour] = numbers.get(file.hour, -1) + 1
        folder = f"archive/{kind}/{folder_of(file.hour)}" if file.hour else f"quarantine/{kind}/run={run}"
        moves.append((f"{staged}/{kind}/{file.path}", f"{folder}/{run}-{number:04d}.parquet"))
    return moves


def hour_of(path: str) -> str:
    """Return 'YYYY-MM-DDTHH' of a path with day= and hour=, '' of others."""
    parts = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    return f"{parts['day']}T{parts['hour']}" if "hour" in parts else ""


def run(spark: SparkSession, settings: Settings) -> dict[str, Any]:
    """Run the job and return the summary.

    Raises Locked, OutputError, ClockWrong, OtherStore, LaxerPlan, DataLoss, StoreError.
    """
    files = Files(settings.output)
    with Lock(files, settings.lock_s) as lock:
        ended = Summaries(files)
        begun = read_begun(files, ended)
        in_hand = begun.in_hand()
        publish.tidy(files, in_hand)
        for left in publish.unfinished(files, in_hand):
            log.warning("finishing an earlier, unfinished run", extra={"action": "resume", "run": left})
            finish(spark, files, settings, left, lock, ended)
        if publish.is_done(files, settings.run):
            log.info("this run is already done", extra={"action": "nothing", "run": settings.run})
        else:
            plan = freeze(settings, files, read_state(files))
            lock.check()  # waiting for the store may have taken long
            begin(files, begun, plan)
            log.info(
                "run planned", extra={"action": "planned", "run": plan.run, "streams": len(plan.streams)}
            )
            finish(spark, files, settings, plan.run, lock, ended)
        found: dict[str, Any] = files.read_json(publish.done_file(settings.run))
    return found


def finish(
    spark: SparkSession, files: Files, settings: Settings, name: str, lock: Lock, ended: Summaries
) -> None:
    """Finish a run from its current state."""
    if files.exists(publish.ready_file(name)):
        publish.roll_forward(files, publish.read_ready(files, name), lock)
        return
    plan = publish.read_plan(files, name)
    check_shape(settings, files, plan)
    check_store(settings, files, plan)
    kept = with_retention(settings, plan)
    publish.publish(files, Run(spark, files, settings, kept, ended).stage(), lock)
