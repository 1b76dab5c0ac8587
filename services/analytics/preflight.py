"""Look at the store before Spark starts, and compare it with what the run before has seen."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from services.analytics import clocks
from services.analytics.settings import Settings
from services.redis_stream.finding import known_streams, open_store, state_of
from services.redis_stream.losses import DataLoss
from services.redis_stream.options import Options
from services.redis_stream.schema import Kind
from services.store.catalogue import StreamState, parse_id

KINDS = (Kind.DEAD, Kind.SAMPLES)
log = logging.getLogger(__name__)


class OtherStore(Exception):
    """The output belongs to another store; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stream at one moment."""

    kind: Kind
    last: str  # id of its last entry
    added: int  # entries added since it was created
    length: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The store at the beginning of a run: the run reads up to these ends."""

    dataset: str
    now_ms: int
    streams: dict[str, Place]  # by key

    def ends(self, kind: Kind) -> dict[str, str]:
        """Return the id up to which each stream of the kind is read."""
        return {key: place.last for key, place in self.streams.items() if place.kind is kind}


@dataclass(frozen=True, slots=True)
class Before:
    """What the run before has seen; nothing before the first run."""

    dataset: str = ""
    now_ms: int = 0
    ends: dict[str, str] | None = None
    added: dict[str, int] | None = None


def look(settings: Settings) -> Seen:
    """Return the state of the store. Raises ClockWrong, StoreError."""
    with open_store(Options(url=settings.store, patience_s=settings.patience_s)) as reading:
        dataset = reading.epoch().partition(".")[0]
        now_ms = reading.now_ms()
        streams: dict[str, Place] = {}
        for kind in KINDS:
            for stream in known_streams(reading, Options(url=settings.store, kind=kind)):
                if (state := state_of(reading, kind, stream.key)) is not None:
                    streams[stream.key] = _place(kind, state)
    if not settings.accept_clock:
        clocks.check_machine(now_ms, int(time.time() * 1000))
    return Seen(dataset, now_ms, streams)


def _place(kind: Kind, state: StreamState) -> Place:
    return Place(kind, state.last, state.added, state.length)


def compare(settings: Settings, seen: Seen, before: Before) -> list[str]:
    """Check the store against the run before, and return the keys of streams that lost an unknown number of entries.

    Raises OtherStore, ClockWrong, DataLoss.
    """
    if before.dataset not in ("", seen.dataset):
        if not settings.accept_store:
            raise OtherStore(
                f"previous runs read the store with dataset {before.dataset}, but this store has {seen.dataset}: give "
                "another --output, or run once with --accept-store to read all of this store into the same tables"
            )
        log.warning(
            "the store is not the previous one; it is read from its beginning",
            extra={"action": "other_store", "dataset": seen.dataset},
        )
        return []
    if not settings.accept_clock:
        clocks.check_last_run(seen.now_ms, before.now_ms, settings.retention_days)
    return [key for key, end in (before.ends or {}).items() if _is_lost(settings, seen, before, key, end)]


def _is_lost(settings: Settings, seen: Seen, before: Before, key: str, end: str) -> bool:
    place = seen.streams.get(key)
    if place is None:
        # queues are deleted with their dead letters; samples are not
        return key in _samples(before) and _lose(
            settings, f"{key} was read up to {end}, but no longer exists"
        )
    if parse_id(place.last) < parse_id(end):
        return _lose(settings, f"{key} was read up to {end}, but now ends at {place.last}")
    had = (before.added or {}).get(key, 0)
    if place.added < had:
        now = f"{key} had {had} entries when it was read, but now counts {place.added}"
        return _tell(f"{now}: it was replaced or restored from an older state")
    return False


def _samples(before: Before) -> set[str]:
    return {key for key in before.ends or {} if key.endswith(":samples")}


def _lose(settings: Settings, why: str) -> bool:
    if settings.fail_on_loss:
        raise DataLoss(f"{why}: the store lost data; use --no-fail-on-data-loss to continue")
    return _tell(why)


def _tell(why: str) -> bool:
    log.warning("an unknown number of entries is lost: %s", why, extra={"action": "lost"})
    return True


def expected(seen: Seen, before: Before, kind: Kind) -> int:
    """Return how many entries of the kind this run has to read; those trimmed before the first run do not count."""
    had, found = before.added or {}, 0
    for key, place in seen.streams.items():
        if place.kind is kind:
            is_first = key not in had and kind is Kind.SAMPLES
            found += place.length if is_first else max(0, place.added - had.get(key, 0))
    return found
