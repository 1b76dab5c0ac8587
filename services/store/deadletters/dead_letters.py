"""Read, redrive and purge the dead letters of a queue, in steps that can be interrupted and continued."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from itertools import compress

from services.store.deadletters.searching import SEARCH_S, try_on
from services.store.model.client import INTERNAL_CLIENT
from services.store.model.dead_letter import (
    MAX_PART,
    OWN_REASONS,
    DeadLetter,
    Filter,
    is_id,
    is_last_id,
    parse_id,
)
from services.store.model.errors import (
    REFUSAL_LABELS,
    DomainMismatch,
    QueueFull,
    QueueUnknown,
    ReasonUnknown,
    StoreError,
    StoreFault,
    refusal,
)
from services.store.model.queues import Queue
from services.store.model.spec import Overflow
from services.store.pipeline.domain import Domain
from services.store.tracing.redrive_spans import record_redrives

PAGE = 200  # dead letters read, moved or removed in one call; fewer if they are large
# dead letters that one call compares with a filter, which bounds the latency of other requests
SCAN_LIMIT = 100
PAGE_OCTETS = 4 << 20
WHOLE = -1
NONE = "0-0"  # precedes every dead letter


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """The result of redriving one page."""

    moved: int
    missing: int  # redriven or purged by others meanwhile
    stopped: StoreError | None  # why the redrive cannot continue


@dataclass(frozen=True, slots=True)
class ScanStep:
    """The result of one step of a scan."""

    letters: list[DeadLetter]
    last: str  # id of the last dead letter scanned, whether it matches or not; '' = none
    is_last: bool  # the scan has reached the end


class DeadLetters:
    """The dead letters of one queue. Every method raises StoreError."""

    def __init__(self, domain: Domain, queue: Queue) -> None:
        self._domain = domain
        self._queue = queue
        self._key = queue.keys[6]
        self._scan_keys = (self._key, queue.keys[1])
        self._recorder = None if domain.tracing is None else domain.tracing.recorder

    async def count(self, until_ms: int = 0) -> int:
        """Count all dead letters, or those that died until a time of the domain's clock, by scanning later ones."""
        later = await self._count_after(f"{until_ms}-{MAX_PART}") if until_ms else 0
        number = int(await self._domain.link.call("XLEN", self._key))
        return max(0, number - later)  # some may have been removed meanwhile

    async def _count_after(self, place: str) -> int:
        return sum([len(letters) async for letters in self._all(Filter(), 0, 0, after=place)])

    async def find(self, identifier: str) -> DeadLetter | None:
        """Return the dead letter with an id, or None."""
        if not is_id(identifier):
            return None
        step = await self._scan(identifier, identifier, Filter(), 0, 1, WHOLE)
        return step.letters[0] if step.letters else None

    async def scan(
        self,
        after: str,
        wanted: Filter,
        now_ms: int,
        count: int = PAGE,
        octets: int = WHOLE,
        search_s: float = SEARCH_S,
    ) -> ScanStep:
        """Return up to `count` matching dead letters after an id ('' = from the oldest), oldest first.

        With a filter, a step compares at most SCAN_LIMIT dead letters, fewer if they are large, and may find none
        although more follow: continue after `last`.

        Args:
            after: An id; '' = from the oldest.
            wanted: Which ones.
            now_ms: The time for the filter's ages, by the store's clock.
            count: The greatest number.
            octets: Prefix of each body to read; all of it for a filter with a pattern.
            search_s: About how long the search for a pattern may take.

        Raises:
            ValueError: For an invalid id.
        """
        if after and not is_id(after):
            raise ValueError(f"{after!r} is not the id of a dead letter")
        if after and is_last_id(after):
            return ScanStep([], "", True)
        octets = octets if wanted.body is None else WHOLE
        return await self._scan(
            f"({after}" if after else "-", wanted.until or "+", wanted, now_ms, count, octets, search_s
        )

    async def matching(self, wanted: Filter | None = None, octets: int = WHOLE) -> AsyncIterator[DeadLetter]:
        """Yield matching dead letters, oldest first. octets: prefix of each body to read."""
        async for letters in self.steps(wanted or Filter(), octets):
            for letter in letters:
                yield letter

    async def steps(self, wanted: Filter, octets: int = WHOLE) -> AsyncIterator[list[DeadLetter]]:
        """Yield matching dead letters in batches, one for each call to the store; batches may be empty."""
        now_ms = await self._domain.link.now_ms()
        found = self._named(wanted, now_ms, octets) if wanted.ids else self._all(wanted, now_ms, octets)
        async for letters in found:
            yield letters

    async def check_reasons(self, reasons: Iterable[str]) -> None:
        """Raise ReasonUnknown for a reason that is neither a standard one nor used by a dead letter of this queue.

        Imported dead letters, and edges of other vendors, may have reasons of their own.
        """
        for reason in reasons:
            if reason in OWN_REASONS or reason in REFUSAL_LABELS:
                continue
            async for _ in self.matching(Filter((reason,)), octets=0):
                break
            else:
                raise ReasonUnknown(
                    f"no dead letter of queue {self._queue.name!r} has the reason {reason!r}, which is not standard: "
                    f"use one that `penstock dead list` shows, or one of {', '.join(sorted(OWN_REASONS))}"
                )

    async def until_now(self, wanted: Filter) -> Filter:
        """Restrict a filter to the present, so that the counted dead letters are those redriven or purged later.

        Raises ReasonUnknown.
        """
        await self.check_reasons(wanted.reasons)
        if wanted.older_than_ms:
            wanted = wanted.as_of(await self._domain.link.now_ms())
        if wanted.until or wanted.ids:
            return wanted
        last = await self._domain.link.call("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        return replace(wanted, until=last[0][0].decode() if last else NONE)

    async def pages(self, wanted: Filter, size: int) -> AsyncIterator[list[str]]:
        """Yield ids of matching dead letters by pages; messages that die after the start are excluded."""
        wanted = await self.until_now(wanted)
        page: list[str] = []
        async for letter in self.matching(wanted, octets=0):
            page.append(letter.id)
            if len(page) == size:
                yield page
                page = []
        if page:
            yield page

    async def _all(
        self, wanted: Filter, now_ms: int, octets: int, after: str = ""
    ) -> AsyncIterator[list[DeadLetter]]:
        is_last = False
        while not is_last:
            step = await self.scan(after, wanted, now_ms, octets=octets)
            yield step.letters
            after, is_last = step.last or after, step.is_last

    async def _named(self, wanted: Filter, now_ms: int, octets: int) -> AsyncIterator[list[DeadLetter]]:
        """Yield the dead letters with the ids of the filter, without reading others."""
        octets = octets if wanted.body is None else WHOLE
        for each in sorted(filter(is_id, set(wanted.ids)), key=parse_id):
            yield (await self._scan(each, each, wanted, now_ms, 1, octets)).letters

    async def _scan(
        self,
        start: str,
        end: str,
        wanted: Filter,
        now_ms: int,
        count: int,
        octets: int,
        search_s: float = SEARCH_S,
    ) -> ScanStep:
        is_all = wanted == Filter(until=wanted.until)
        bounds = (start, end, count, octets, PAGE if is_all else SCAN_LIMIT)
        reply = await self._domain.link.function("dead", self._scan_keys, *bounds, *wanted.arguments(now_ms))
        more, last, *flat = reply
        found = [(flat[at], flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
        if wanted.body is not None and found:
            fits = await try_on(wanted.body, [_body(fields) for *_, fields in found], search_s)
            if len(fits) < len(found):
                more, last = True, found[len(fits) - 1][0]
            found = list(compress(found, fits))
        letters = [_read(*each) for each in found]
        return ScanStep([each for each in letters if wanted.matches(each, now_ms)], last.decode(), not more)

    async def redrive(self, ids: list[str], target: Queue | None = None, run: str = "") -> RedriveResult:
        """Move up to PAGE dead letters to the end of their queue or of `target`, each in one step.

        They are moved in the order of `ids`, up to about 4 MiB; repeat the call with the rest.

        Args:
            ids: Of the dead letters.
            target: Another queue of the same domain; None = their own.
            run: Identifier under which the store counts the moved ones (`moved_by`), even if the answer is lost.

        Raises:
            DomainMismatch: For a target in another domain.
            QueueUnknown: One of the queues was deleted.
        """
        goal = target or self._queue
        self.check_target(goal)
        keys = [*self._queue.keys, *goal.keys]
        if self._recorder is not None:
            keys.append(self._domain.keys.epoch)  # requests details of what was moved (lua/redrive.lua)
        start_ns = time.time_ns()
        args = (self._domain.keys.wake_channel, *((run,) if run else ()), *ids[:PAGE])
        # a retry after a lost answer would report moved ones as missing
        reply = await self._domain.function("redrive", keys, *args, attempts=1)
        if reply == b"GONE":
            raise QueueUnknown
        moved, missing, reason, *details = reply
        if self._recorder is not None:
            record_redrives(self._recorder, goal, details, start_ns)
        return RedriveResult(moved, missing, _stopped(reason, goal) if reason else None)

    def check_target(self, target: Queue) -> None:
        """Raise DomainMismatch for a queue in another domain, AccessDenied for another internal queue."""
        if target.qid != self._queue.qid:
            target.admit(INTERNAL_CLIENT)
        if target.domain != self._queue.domain:
            raise DomainMismatch(
                f"queue {target.name!r} is in another domain: redrive to a queue in domain {self._queue.domain!r}"
            )

    async def try_target(self, target: Queue) -> None:
        """Raise the error that would stop a redrive into `target` at once, without moving anything.

        This may be DomainMismatch, QueueUnknown, QueuePaused, QueueFull and others.
        """
        done = await self.redrive([], target)
        if done.stopped is not None:
            raise done.stopped

    async def moved_by(self, run: str) -> int:
        """Return how many dead letters a run has moved so far."""
        return int(await self._domain.link.call("HGET", self._queue.keys[1], f"redrive:{run}") or 0)

    async def forget_run(self, run: str) -> None:
        """Remove the counter of a run."""
        await self._domain.link.call("HDEL", self._queue.keys[1], f"redrive:{run}")

    async def purge(self, ids: list[str]) -> int:
        """Delete up to PAGE dead letters; return how many existed."""
        keys = [self._queue.keys[1], self._key]
        return int(await self._domain.function("purge", keys, *ids[:PAGE]))


def _stopped(reason: bytes, target: Queue) -> StoreError:
    """Return why a redrive into this target stopped, and for a full one what to do."""
    error = refusal(reason)
    if not isinstance(error, QueueFull):
        return error
    way_out = "raise its maxLength or maxBytes, or redrive to another target"
    if target.spec.overflow is Overflow.DEAD_LETTER_OLDEST:
        return QueueFull(f"the queue is full, and a redrive displaces no messages as a put does: {way_out}")
    return QueueFull(f"the queue is full: take messages out of it, {way_out}")


def _read(identifier: bytes, size: int, flat: list[bytes]) -> DeadLetter:
    """Parse a dead letter. Raises StoreFault if it is damaged."""
    try:
        return DeadLetter.parse(identifier, size, flat)
    except (ValueError, KeyError, TypeError) as error:
        text = f"the dead letter {identifier.decode()} in the store cannot be read: {error!r}"
        raise StoreFault(text) from error


def _body(flat: list[bytes]) -> bytes:
    """Return the body in a reply, without parsing the rest, as most dead letters do not match a pattern."""
    return flat[2 * flat[::2].index(b"body") + 1]
