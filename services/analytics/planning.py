"""Make the plan of a run: what the store has beyond what earlier runs have read."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from services.analytics import clocks
from services.analytics.files import Files
from services.analytics.hours import hour_at, later
from services.analytics.overlap import Overlap
from services.analytics.plan import KINDS, Plan, Planned
from services.analytics.publish import folder
from services.analytics.settings import Settings
from services.analytics.state import State
from services.redis_stream.finding import known_streams, open_store, state_of
from services.redis_stream.losses import DataLoss
from services.redis_stream.options import Options
from services.redis_stream.schema import Kind
from services.store.catalogue import BEGINNING, StreamReader, StreamState, parse_id

# How long the position in a missing or unreadable stream is kept.
KEPT_MS = 90 * 86_400_000
log = logging.getLogger(__name__)


class OtherStore(Exception):
    """The output belongs to another store; the text says what to do."""


class LaxerPlan(Exception):
    """A plan would archive what the run's flags forbid; the text says what to do."""


def freeze(settings: Settings, files: Files, state: State) -> Plan:
    """Plan up to the current end of the store. Raises ClockWrong, OtherStore, DataLoss, StoreError, OutputError."""
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
    """Check that a plan was made for this store. Raises OtherStore, StoreError."""
    with open_store(Options(url=settings.store, patience_s=settings.patience_s)) as reading:
        dataset = reading.epoch().partition(".")[0]
    if plan.dataset not in ("", dataset):
        raise OtherStore(
            f"run {plan.run} was planned for the store with dataset {plan.dataset}, but this store has {dataset}: "
            f"give the planned store; or abandon the run by removing {files.uri(folder(plan.run))}"
        )


def check_shape(settings: Settings, files: Files, plan: Plan) -> None:
    """Check that a plan, maybe of another run, archives no more than the current flags allow. Raises LaxerPlan."""
    if laxer := plan.shape.laxer_than(settings.shape):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in laxer)
        raise LaxerPlan(
            f"run {plan.run} was planned with other flags and would archive what the current flags forbid ({flags}): "
            f"remove {files.uri(folder(plan.run))} so that the next run plans again, or run once with the old flags"
        )


def with_retention(settings: Settings, plan: Plan) -> Plan:
    """Return the plan such that it removes nothing that the current flags keep.

    The next plan removes what is too old: the clock of this plan was not checked for that.
    """
    return replace(plan, shape=plan.shape.keeping(settings.shape))


def _of_same_store(settings: Settings, state: State, dataset: str) -> State:
    """Return the state; for another store, without streams, even of the same names, and without closed hours.

    The newest hour of the previous store must not close hours of this one.
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
    """The planning of all streams; each is inspected once."""

    def __init__(
        self, settings: Settings, files: Files, state: State, reading: StreamReader, now_ms: int
    ) -> None:
        self._settings = settings
        self._files = files
        self._state = state
        self._reading = reading
        self._now_ms = now_ms
        self.lost: list[str] = []  # keys of streams with an unknown loss

    def streams(self) -> dict[str, Planned]:
        """Return the ranges of all streams. Raises DataLoss, StoreError."""
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
        """Return known streams that were not found; if they come back, their entries are not read again."""
        return {
            key: Planned(Kind.DEAD, place, place, self._state.added.get(key, 0), 0)
            for key, place in self._state.streams.items()
            if key not in seen and parse_id(place)[0] > self._now_ms - KEPT_MS
        }

    def _planned(self, kind: Kind, key: str) -> Planned | None:
        """Return the range of a stream, or None if it does not exist."""
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
        # what was trimmed before the first run is not missed
        expected = state.added - before if has_begun else state.length
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
