"""Dead letters: look, filter, bring back, remove. Every step moves whole messages; a run may stop and go on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from services.store.domain import Domain
from services.store.errors import DomainMismatch, QueueUnknown, StoreError, refusal
from services.store.queues import Queue
from services.store.redrive_spans import RedriveSpans

PAGE = 200  # dead letters read, moved or removed in one call; fewer if they are large
PAGE_OCTETS = 4 << 20
WHOLE = -1
ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
MAX_PART = (1 << 64) - 1  # of each half of an id


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead message. Times are ms since 1970 of the store's clock; 0 = never delivered."""

    id: str  # opaque, but later ones sort later
    reason: str
    error: str
    origin: str
    acquired: int  # deliveries
    failed: int  # of them
    enqueued_ms: int
    first_ms: int
    last_ms: int
    died_ms: int
    body: bytes
    attributes: dict[str, Any]
    note: str = ""  # what was written beside it while it was tried
    redriven: int = 0  # how often it had been brought back before it died
    size: int = 0  # octets of the whole body; `body` may be its beginning

    @classmethod
    def parse(cls, identifier: bytes, size: int, flat: list[bytes]) -> DeadLetter:
        f = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
        return cls(
            id=identifier.decode(),
            reason=f["reason"].decode(),
            error=f["error"].decode("utf-8", "replace"),
            origin=f["origin"].decode("utf-8", "replace"),
            acquired=int(f["acquired"]),
            failed=int(f["failed"]),
            enqueued_ms=int(f["enqueued"]),
            first_ms=int(f["first"]),
            last_ms=int(f["last"]),
            died_ms=int(f["died"]),
            body=f["body"],
            attributes=msgpack.unpackb(f["attributes"]) if "attributes" in f else {},
            note=f.get("note", b"").decode("utf-8", "replace"),
            redriven=int(f.get("redriven", 0)),
            size=size,
        )


class Pattern(Protocol):
    """What a body has to match: one of `re`, or of whoever bounds the time of a search."""

    def search(self, text: bytes, /) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters are meant; an empty one means all."""

    reasons: tuple[str, ...] = ()
    origin: str = ""  # a part of the origin
    older_than_ms: int = 0  # dead for at least this long
    body: Pattern | None = None
    ids: tuple[str, ...] = ()
    died_until_ms: int = 0  # of the store's clock; 0 = whenever

    def matches(self, letter: DeadLetter, now_ms: int) -> bool:
        return (
            (not self.reasons or letter.reason in self.reasons)
            and self.origin in letter.origin
            and now_ms - letter.died_ms >= self.older_than_ms
            and (not self.died_until_ms or letter.died_ms <= self.died_until_ms)
            and (self.body is None or self.body.search(letter.body) is not None)
            and (not self.ids or letter.id in self.ids)
        )


@dataclass(frozen=True, slots=True)
class Redriven:
    """What one page of a redrive did."""

    moved: int
    missing: int  # somebody else had taken them out meanwhile
    stopped: StoreError | None  # why it cannot go on


def _age(identifier: str) -> tuple[int, ...]:
    return tuple(map(int, identifier.split("-")))


def is_id(text: str) -> bool:
    """Whether a dead letter could have it."""
    return ID.fullmatch(text) is not None and max(_age(text)) <= MAX_PART


class DeadLetters:
    def __init__(self, domain: Domain, queue: Queue) -> None:
        self._domain = domain
        self._queue = queue
        self._key = queue.keys[6]
        self._recorder = None if domain.tracing is None else domain.tracing.recorder

    async def count(self) -> int:
        return int(await self._domain.link.call("XLEN", self._key))

    async def find(self, identifier: str) -> DeadLetter | None:
        if not is_id(identifier):
            return None
        page, _ = await self._read(identifier, identifier, 1, WHOLE)
        return page[0] if page else None

    async def after(self, identifier: str, count: int, octets: int = WHOLE) -> tuple[list[DeadLetter], bool]:
        """At most so many that died after this one ('' = from the first on), and whether these were the last ones.

        Fewer if they are large. octets: how much of each body is read. Raises ValueError for what is no id.
        """
        if identifier and not is_id(identifier):
            raise ValueError(f"{identifier!r} is no id of a dead letter")
        return await self._read(f"({identifier}" if identifier else "-", "+", count, octets)

    async def matching(self, wanted: Filter | None = None, octets: int = WHOLE) -> AsyncIterator[DeadLetter]:
        """Oldest first. octets: how much of each body is read, if its rest is not needed.

        With a pattern for bodies they are read whole.
        """
        wanted = wanted or Filter()
        octets = octets if wanted.body is None else WHOLE
        now_ms = await self._domain.link.now_ms()
        found = self._named(wanted.ids, octets) if wanted.ids else self._all(octets)
        async for letter in found:
            if wanted.matches(letter, now_ms):
                yield letter

    async def pages(self, wanted: Filter, size: int) -> AsyncIterator[list[str]]:
        """Ids of what was dead when we began: what dies meanwhile is not taken again and again."""
        page: list[str] = []
        async for letter in self.matching(wanted, octets=0):
            page.append(letter.id)
            if len(page) == size:
                yield page
                page = []
        if page:
            yield page

    async def _all(self, octets: int) -> AsyncIterator[DeadLetter]:
        start, is_last = "-", False
        while not is_last:
            page, is_last = await self._read(start, "+", PAGE, octets)
            for letter in page:
                yield letter
            start = f"({page[-1].id}" if page else start

    async def _named(self, ids: tuple[str, ...], octets: int) -> AsyncIterator[DeadLetter]:
        """Those with these ids, if they are there, and nobody else's bodies."""
        for identifier in sorted(filter(is_id, set(ids)), key=_age):
            page, _ = await self._read(identifier, identifier, 1, octets)
            for letter in page:
                yield letter

    async def _read(self, start: str, end: str, count: int, octets: int) -> tuple[list[DeadLetter], bool]:
        """A page, and whether there is nothing behind it."""
        more, *told = await self._domain.link.function("dead", [self._key], start, end, count, octets)
        return [DeadLetter.parse(*told[i : i + 3]) for i in range(0, len(told), 3)], not more

    async def redrive(self, ids: list[str], target: Queue | None = None, run: str = "") -> Redriven:
        """Moves up to PAGE dead letters back to the end of their queue, or of `target`, each in one step.

        In the order of `ids`, and as many as have some 4 MiB: whoever wants all asks again with what is left.
        run: under which the store counts what is moved (`moved_by`), whatever becomes of the answer.
        Raises DomainMismatch for a target in another domain, QueueUnknown.
        """
        goal = target or self._queue
        self.check_target(goal)
        keys = [*self._queue.keys, *goal.keys]
        named = (run,) if run else ()
        spans = RedriveSpans(self._recorder, await self._looked_at(ids[:PAGE]), goal)
        # Not asked twice: what a lost answer had moved would be told as missing.
        reply = await self._domain.function(
            "redrive", keys, self._domain.keys.wake_channel, *named, *ids[:PAGE], attempts=1
        )
        if reply == b"GONE":
            raise QueueUnknown
        moved, missing, reason = reply
        spans.done(ids[: moved + missing])
        return Redriven(moved, missing, refusal(reason) if reason else None)

    async def _looked_at(self, ids: list[str]) -> list[DeadLetter]:
        """What they carry, if this process is traced: one question more. They lie close together, mostly."""
        if self._recorder is None or not ids:
            return []
        page, _ = await self._read(min(ids, key=_age), max(ids, key=_age), PAGE, 0)
        return [letter for letter in page if letter.id in ids]

    def check_target(self, target: Queue) -> None:
        """Raises DomainMismatch for one in another domain."""
        if target.domain != self._queue.domain:
            raise DomainMismatch(
                f"queue {target.name!r} is in another domain: dead letters cannot move there in one step"
            )

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
