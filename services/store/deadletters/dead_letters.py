"""Dead letters: look, filter, bring back, remove. Every step moves whole messages; a run may stop and go on."""

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
from services.store.tracing import redrive_spans

PAGE = 200  # dead letters read, moved or removed in one call; fewer if they are large
LOOK = 100  # that one call compares with a filter: those who wait for the store meanwhile should not feel it
PAGE_OCTETS = 4 << 20
WHOLE = -1
NONE = "0-0"  # behind no dead letter


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """What one page of a redrive did."""

    moved: int
    missing: int  # somebody else had taken them out meanwhile
    stopped: StoreError | None  # why it cannot go on


@dataclass(frozen=True, slots=True)
class ScanStep:
    """What one step of a look found."""

    letters: list[DeadLetter]
    last: str  # the last one that was looked at, also if it is not meant; '' = there was none
    is_last: bool  # there is nothing behind it


class DeadLetters:
    def __init__(self, domain: Domain, queue: Queue) -> None:
        self._domain = domain
        self._queue = queue
        self._key = queue.keys[6]
        self._looked_in = (self._key, queue.keys[1])
        self._recorder = None if domain.tracing is None else domain.tracing.recorder

    async def count(self, until_ms: int = 0) -> int:
        """How many there are, or died until this moment of the domain's clock: only later ones are looked at."""
        later = await self._behind(f"{until_ms}-{MAX_PART}") if until_ms else 0
        number = int(await self._domain.link.call("XLEN", self._key))
        return max(0, number - later)  # some may have gone meanwhile

    async def _behind(self, place: str) -> int:
        """How many have later ids."""
        number, is_last = 0, False
        while not is_last:
            looked = await self.scan(place, Filter(), 0, octets=0)
            number += len(looked.letters)
            place, is_last = looked.last or place, looked.is_last
        return number

    async def find(self, identifier: str) -> DeadLetter | None:
        if not is_id(identifier):
            return None
        looked = await self._scan(identifier, identifier, Filter(), 0, 1, WHOLE)
        return looked.letters[0] if looked.letters else None

    async def scan(
        self,
        after: str,
        wanted: Filter,
        now_ms: int,
        count: int = PAGE,
        octets: int = WHOLE,
        search_s: float = SEARCH_S,
    ) -> ScanStep:
        """One step from this id on ('' = from the first): at most so many of those that are meant, the oldest first.

        With a filter it looks at LOOK letters at most, fewer if they are large, and may find none though there are more
        behind: whoever wants all goes on behind `last`. octets: how much of each body is read; they are read whole
        where a pattern is to be tried on them, which ends after search_s. Raises ValueError for what is no id.
        """
        if after and not is_id(after):
            raise ValueError(f"{after!r} is no id of a dead letter")
        if after and is_last_id(after):
            return ScanStep([], "", True)
        octets = octets if wanted.body is None else WHOLE
        return await self._scan(
            f"({after}" if after else "-", wanted.until or "+", wanted, now_ms, count, octets, search_s
        )

    async def matching(self, wanted: Filter | None = None, octets: int = WHOLE) -> AsyncIterator[DeadLetter]:
        """Oldest first. octets: how much of each body is read, if its rest is not needed."""
        async for letters in self.steps(wanted or Filter(), octets):
            for letter in letters:
                yield letter

    async def steps(self, wanted: Filter, octets: int = WHOLE) -> AsyncIterator[list[DeadLetter]]:
        """The same by calls to the store, of which each may find none."""
        now_ms = await self._domain.link.now_ms()
        found = self._named(wanted, now_ms, octets) if wanted.ids else self._all(wanted, now_ms, octets)
        async for letters in found:
            yield letters

    async def check_reasons(self, reasons: Iterable[str]) -> None:
        """Raises ReasonUnknown for one that is mistyped: it is none of ours, and no letter here has it.

        Edges of others have reasons of their own, and so have imported letters.
        """
        for reason in reasons:
            if reason in OWN_REASONS or reason in REFUSAL_LABELS:
                continue
            async for _ in self.matching(Filter((reason,)), octets=0):
                break
            else:
                raise ReasonUnknown(
                    f"no dead letter of queue {self._queue.name!r} died of {reason!r}, and that is no reason of ours: "
                    f"write one that `penstock dead list` shows, or one of {', '.join(sorted(OWN_REASONS))}"
                )

    async def until_now(self, wanted: Filter) -> Filter:
        """Of these the ones that are meant now: counted, they are no others when they are moved or removed.

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
        """Ids of what was dead when we began: what dies meanwhile is not taken again and again."""
        wanted = await self.until_now(wanted)
        page: list[str] = []
        async for letter in self.matching(wanted, octets=0):
            page.append(letter.id)
            if len(page) == size:
                yield page
                page = []
        if page:
            yield page

    async def _all(self, wanted: Filter, now_ms: int, octets: int) -> AsyncIterator[list[DeadLetter]]:
        after, is_last = "", False
        while not is_last:
            looked = await self.scan(after, wanted, now_ms, octets=octets)
            yield looked.letters
            after, is_last = looked.last or after, looked.is_last

    async def _named(self, wanted: Filter, now_ms: int, octets: int) -> AsyncIterator[list[DeadLetter]]:
        """Those with these ids, if they are there, and nobody else's bodies."""
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
        bounds = (start, end, count, octets, PAGE if is_all else LOOK)
        told = await self._domain.link.function("dead", self._looked_in, *bounds, *wanted.arguments(now_ms))
        more, last, *flat = told
        found = [(flat[at], flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
        if wanted.body is not None and found:
            fits = await try_on(wanted.body, [_body(fields) for *_, fields in found], search_s)
            if len(fits) < len(found):
                more, last = True, found[len(fits) - 1][0]
            found = list(compress(found, fits))
        letters = [_read(*each) for each in found]
        return ScanStep([each for each in letters if wanted.matches(each, now_ms)], last.decode(), not more)

    async def redrive(self, ids: list[str], target: Queue | None = None, run: str = "") -> RedriveResult:
        """Moves up to PAGE dead letters back to the end of their queue, or of `target`, each in one step.

        In the order of `ids`, and as many as have some 4 MiB: whoever wants all asks again with what is left.
        run: under which the store counts what is moved (`moved_by`), whatever becomes of the answer.
        Raises DomainMismatch for a target in another domain, QueueUnknown.
        """
        goal = target or self._queue
        self.check_target(goal)
        keys = [*self._queue.keys, *goal.keys]
        named = (run,) if run else ()
        if self._recorder is not None:
            keys.append(self._domain.keys.epoch)  # what was moved is told, too (lua/redrive.lua)
        start_ns = time.time_ns()
        # Not asked twice: what a lost answer had moved would be told as missing.
        reply = await self._domain.function(
            "redrive", keys, self._domain.keys.wake_channel, *named, *ids[:PAGE], attempts=1
        )
        if reply == b"GONE":
            raise QueueUnknown
        moved, missing, reason, *told = reply
        if self._recorder is not None:
            redrive_spans.tell(self._recorder, goal, told, start_ns)
        return RedriveResult(moved, missing, _stopped(reason, goal) if reason else None)

    def check_target(self, target: Queue) -> None:
        """Raises DomainMismatch for one in another domain, AccessDenied for another queue that is internal."""
        if target.qid != self._queue.qid:
            target.admit(INTERNAL_CLIENT)
        if target.domain != self._queue.domain:
            raise DomainMismatch(
                f"queue {target.name!r} is in another domain: dead letters cannot move there in one step"
            )

    async def try_target(self, target: Queue) -> None:
        """Raises what a redrive into it would stop with at once: DomainMismatch, QueueUnknown, QueuePaused, QueueFull
        and the like. Nothing is moved."""
        done = await self.redrive([], target)
        if done.stopped is not None:
            raise done.stopped

    async def moved_by(self, run: str) -> int:
        """How many dead letters a run has moved until now."""
        return int(await self._domain.link.call("HGET", self._queue.keys[1], f"redrive:{run}") or 0)

    async def forget_run(self, run: str) -> None:
        """Nobody will ask any more."""
        await self._domain.link.call("HDEL", self._queue.keys[1], f"redrive:{run}")

    async def purge(self, ids: list[str]) -> int:
        """Removes up to PAGE dead letters for good; answers how many there were."""
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
    """Raises StoreFault for one that no program of ours has written."""
    try:
        return DeadLetter.parse(identifier, size, flat)
    except (ValueError, KeyError, TypeError) as error:
        text = f"the dead letter {identifier.decode()} in the store cannot be read: {error!r}"
        raise StoreFault(text) from error


def _body(flat: list[bytes]) -> bytes:
    """Of a letter as the store tells it: most that a pattern is tried on need not be read further."""
    return flat[2 * flat[::2].index(b"body") + 1]
