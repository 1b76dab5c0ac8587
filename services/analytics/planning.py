"""A plan made: what the store has now, behind what the runs before have read of it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from services.analytics import clocks
from services.analytics.files import Files
from services.analytics.finding import known_streams, open_store, state_of
from services.analytics.hours import hour_at, later
from services.analytics.losses import DataLoss
from services.analytics.options import Options
from services.analytics.overlap import Overlap
from services.analytics.plan import KINDS, Plan, Planned
from services.analytics.publish import folder
from services.analytics.schema import Kind
from services.analytics.settings import Settings
from services.analytics.state import State
from services.store.catalogue import BEGINNING, StreamReader, StreamState, parse_id

KEPT_MS = (
    90 * 86_400_000
)  # how far runs had come is known so long of a stream that is not there, or cannot be read
log = logging.getLogger(__name__)


class OtherStore(Exception):
    """The output is of another store; the text says what to do."""


class LaxerPlan(Exception):
    """A plan would keep what the run's flags forbid; the text says what to do."""


def freeze(settings: Settings, files: Files, state: State) -> Plan:
    """Up to what the store has now. Raises ClockWrong, OtherStore, DataLoss, StoreError, OutputError."""
    with open_store(Options(url=settings.store, patience_s=settings.patience_s)) as reading:
        dataset = reading.epoch().partition(".")[0]
        state = _of_same_store(settings, state, dataset)
        now_ms = reading.now_ms()
        if not settings.accept_clock:
            clocks.check(now_ms, int(time.time() * 1000), state.now_ms, settings.shape.retention_days)
        freezing = _Freezing(settings, files, state, reading, now_ms)
        streams = freezing.streams()
    newest = min(state.newest, hour_at(now_ms))
    closed = later(newest, -settings.shape.late_hours) if newest else ""
    again = state.again(closed, now_ms)
    return Plan(settings.run, dataset, now_ms, closed, again, settings.shape, streams, freezing.lost)


def check_store(settings: Settings, files: Files, plan: Plan) -> None:
    """Of a plan that is carried out: its ids are of one store. Raises OtherStore, StoreError."""
    with open_store(Options(url=settings.store, patience_s=settings.patience_s)) as reading:
        dataset = reading.epoch().partition(".")[0]
    if plan.dataset not in ("", dataset):
        raise OtherStore(
            f"run {plan.run} was planned for the store with dataset {plan.dataset}, but this store has {dataset}: "
            f"give the planned store; or abandon the run by removing {files.uri(folder(plan.run))}"
        )


def check_shape(settings: Settings, files: Files, plan: Plan) -> None:
    """Of a plan that is carried out, maybe another run's: it archives no more than is wanted now. Raises LaxerPlan."""
    if laxer := plan.shape.laxer_than(settings.shape):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in laxer)
        raise LaxerPlan(
            f"run {plan.run} was planned with other flags and would archive what the current flags forbid ({flags}): "
            f"remove {files.uri(folder(plan.run))} so that the next run plans again, or run once with the old flags"
        )


def with_retention(settings: Settings, plan: Plan) -> Plan:
    """Of a plan that is carried out, maybe another run's: it removes nothing that is to be kept now.

    What is too old now the next plan removes: the clock by which this one was made was not asked for that.
    """
    return replace(plan, shape=plan.shape.keeping(settings.shape))


def _of_same_store(settings: Settings, state: State, dataset: str) -> State:
    """Of another store nothing has been read yet: not its streams, whatever ids those of the same names had.

    Nor is any of its hours closed, however new the rows of the one before were.
    """
    if state.dataset in ("", dataset):
        return state
    if not settings.accept_store:
        raise OtherStore(
            f"previous runs read the store with dataset {state.dataset}, but this store has {dataset}: give another "
            "--output, or run once with --accept-store to read all of this store into the same tables"
        )
    log.warning(
        "the store is not the previous one; it is read from its beginning",
        extra={"action": "other_store", "dataset": dataset},
    )
    return replace(state, streams={}, added={}, newest="")


class _Freezing:
    """Looks at each stream once."""

    def __init__(
        self, settings: Settings, files: Files, state: State, reading: StreamReader, now_ms: int
    ) -> None:
        self._settings = settings
        self._files = files
        self._state = state
        self._reading = reading
        self._now_ms = now_ms
        self.lost: list[str] = []  # keys of streams of which something is missing, and nobody knows how much

    def streams(self) -> dict[str, Planned]:
        found: dict[str, Planned] = {}
        missing = set[str]()
        for kind in KINDS:
            for stream in known_streams(self._reading, Options(url=self._settings.store, kind=kind)):
                planned = self._planned(kind, stream.key)
                if planned is not None:
                    found[stream.key] = planned
                elif kind is Kind.SAMPLES:
                    missing.add(stream.key)
        return self._others({*found, *missing}) | found

    def _others(self, seen: set[str]) -> dict[str, Planned]:
        """Those of before that nobody told of now: should they come back, their entries are not read again."""
        return {
            key: Planned(Kind.DEAD, place, place, self._state.added.get(key, 0), 0)
            for key, place in self._state.streams.items()
            if key not in seen and parse_id(place)[0] > self._now_ms - KEPT_MS
        }

    def _planned(self, kind: Kind, key: str) -> Planned | None:
        """None: there is no such stream."""
        state = state_of(self._reading, kind, key)
        start, before = self._state.streams.get(key, BEGINNING), self._state.added.get(key, 0)
        if state is None:
            if kind is Kind.SAMPLES and start != BEGINNING:
                self._lose(key, f"{key} was read up to {start}, but no longer exists")
            return None
        if parse_id(state.last) < parse_id(start):
            self._lose(key, f"{key} was read up to {start}, but now ends at {state.last}")
            return self._gone_back(kind, key, state)
        if state.added < before:
            had = f"{key} had {before} entries when it was read, but now counts {state.added}"
            self._tell(key, f"{had}: it was replaced or restored from an older state")
            return self._gone_back(kind, key, state)
        has_begun = start != BEGINNING or kind is Kind.DEAD
        expected = (
            state.added - before if has_begun else state.length
        )  # nobody misses what went before the first run
        return Planned(kind, start, state.last, state.added, expected)

    def _gone_back(self, kind: Kind, key: str, state: StreamState) -> Planned:
        start, number = Overlap(self._files, kind, key).end(self._reading, state.last)
        return Planned(kind, start, state.last, state.added, number)

    def _lose(self, key: str, why: str) -> None:
        if self._settings.shape.fail_on_loss:
            raise DataLoss(f"{why}: the store lost data; use --no-fail-on-data-loss to continue")
        self._tell(key, why)

    def _tell(self, key: str, why: str) -> None:
        log.warning("an unknown number of entries is lost: %s", why, extra={"action": "lost"})
        self.lost.append(key)
