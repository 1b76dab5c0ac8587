"""What links between stores need of the log: who we are, what we hold, and taking what neighbours send.

All of it may be asked again: an entry is skipped by exactly the numbers that are held, whoever brings it, and however
often. Times in ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from services.store.log.log import Log, Place, Subscriptions, parse_place
from services.store.model.errors import (
    NotInitialised,
    NumbersScattered,
    OutcomeUnknown,
    StoreError,
    refused_as,
)
from services.store.model.intervals import Intervals
from services.store.model.queues import Queue
from services.store.pipeline.domain import Domain

BASELINE_BYTES = 1 << 20
NEIGHBOURS = 1000  # stores that links were ever set up with
WAIT_MS = 2000  # for replicas

Origin = tuple[bytes, bytes]  # store, incarnation
Held = dict[Origin, Intervals]
CopyCallback = Callable[
    [str], None
]  # what became of a copy: '' = the queue has it, else its reason among the dead letters


@dataclass(frozen=True, slots=True)
class LogState:
    """The log at one moment."""

    store: bytes
    incarnation: bytes
    head: Place
    trimmed: Place  # behind the last entry that is no longer there
    held: Held  # our own numbers too
    gone: Held  # those of them that nobody can get from us any more


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A store that a link was ever set up with, as it is written down here."""

    store: bytes
    seen: str  # up to this place of its log all was sent to us; '': it has not said yet
    follower: str  # "<session> <connection>" of the edge that follows it now; '': none does


@dataclass(frozen=True, slots=True)
class Arrived:
    """Lines of one origin, with consecutive numbers from `first` on."""

    store: bytes
    incarnation: bytes
    first: int
    messages: int
    bridged: bool
    block: bytes
    copies: list[tuple[int, Queue, bytes]] = field(default_factory=list)  # index of the line, queue, record
    told: dict[int, CopyCallback] = field(
        default_factory=dict
    )  # by place among the copies: who is told of one that is made now, and has a context


@dataclass(frozen=True, slots=True)
class Gap:
    """Numbers that the neighbour does not have any more."""

    store: bytes
    incarnation: bytes
    first: int
    last: int


def _held(pairs: list[bytes]) -> Held:
    held: Held = {}
    for i in range(0, len(pairs), 2):
        store, _, incarnation = pairs[i].partition(b" ")
        held[store, incarnation] = Intervals.parse(pairs[i + 1].decode())
    return held


def format_held(held: Held) -> str:
    """As it is kept for a neighbour: one origin a line."""
    lines = (f"{store.decode()} {inc.decode()} {numbers.format()}" for (store, inc), numbers in held.items())
    return "\n".join(lines)


def parse_held(text: bytes) -> Held:
    held: Held = {}
    for line in text.decode().splitlines():
        store, incarnation, numbers = line.split(" ")
        held[store.encode(), incarnation.encode()] = Intervals.parse(numbers)
    return held


def _tell(told: dict[int, CopyCallback], reply: list[Any]) -> None:
    """Of those that are told of, what the last part of the reply says, which is taken off it."""
    if told and isinstance(reply[-1], list):  # a library of before says nothing of it
        became = iter(reply.pop())
        for number, reason in zip(became, became, strict=True):
            if number in told:  # others were sent with a context of their own
                told[number](reason.decode())


class Replica:
    """Verbs raise StoreError."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._domain: Domain = log.domain
        self._keys = log.keys

    async def state(self, told: int = 0) -> LogState:
        """As of now. If the store's server is another one than before, a new incarnation has begun with it.

        told: the last number of our incarnation that a neighbour holds. If we have not given it out, our data went back
        in time without anybody's noticing, and a new incarnation begins too.
        """
        reply = await self._domain.function("log_state", list(self._keys.log), told)
        store, incarnation, given, head, trimmed, held_pairs, gone_pairs = reply
        held = _held(held_pairs)
        if int(given):
            held[store, incarnation] = Intervals.parse(f"1-{given.decode()}")
        return LogState(store, incarnation, parse_place(head), parse_place(trimmed), held, _held(gone_pairs))

    async def accept(self, items: list[Arrived | Gap], known: Subscriptions) -> tuple[int, int]:
        """Stores what is not held yet, with its origin and its copies, in one step; (messages, missing ones).

        Raises BindingsChanged where `known`, by which the copies were made, is out of date.
        """
        queues: dict[str, tuple[int, Queue]] = {}
        args: list[Any] = []
        told: dict[int, CopyCallback] = {}
        number = 0  # of copies, through all items
        for item in items:
            if isinstance(item, Gap):
                args += ("G", item.store, item.incarnation, item.first, item.last)
                continue
            args += ("E", item.store, item.incarnation, item.first, item.messages, int(item.bridged))
            args += (item.block, len(item.copies))
            for index, queue, record in item.copies:
                at, _ = queues.setdefault(queue.qid, (len(queues), queue))
                args += (index, at, record)
            told |= {number + place: tell for place, tell in item.told.items()}
            number += len(item.copies)
        keys = [*self._keys.log, *(key for _, queue in queues.values() for key in queue.keys)]
        if told:
            keys.append(self._domain.keys.epoch)  # the answer says what became of them, too (lua/links.lua)
        began = time.monotonic()
        reply = await self._domain.function(
            "log_accept", keys, known.version, self._keys.wake_channel, len(queues), *args
        )
        if isinstance(reply, bytes):
            raise refused_as(reply) or StoreError(reply.decode())
        _tell(told, reply)
        replicas = max([self._log.replicas, *(queue.replicas for _, queue in queues.values())])
        await self._replicated(replicas)
        self._count(reply[2:], [queue for _, queue in queues.values()], time.monotonic() - began)
        return int(reply[0]), int(reply[1])

    def _count(self, copies: list[int], queues: list[Queue], seconds: float) -> None:
        """copies: of each queue that got some, which it is, how many, their octets."""
        tallies = self._domain.tallies
        tallies.answered(seconds)
        for i in range(0, len(copies), 3):
            tallies.accept(queues[copies[i]], copies[i + 1], copies[i + 2])

    async def baseline(self, neighbour: bytes, held: Held) -> Held:
        """What this neighbour held when the link to it was first set up; `held` if that is now. Kept for ever.

        Raises NumbersScattered for one that is too long to be kept, or one neighbour too many, NotInitialised where the
        store is empty.
        """
        key, link = self._keys.log_base, self._domain.link
        if await link.call("HEXISTS", key, neighbour) == 0:
            text = format_held(held)
            if len(text) > BASELINE_BYTES or await link.call("HLEN", key) >= NEIGHBOURS:
                raise NumbersScattered
            await link.call("HSETNX", key, neighbour, text)
        await self._replicated(self._log.replicas)  # whoever wrote it may not have seen to that
        kept = await link.call("HGET", key, neighbour)
        if kept is None:  # it was there just now
            raise NotInitialised
        return parse_held(kept)

    async def neighbours(self) -> list[bytes]:
        """The stores that a link was ever set up with."""
        found: list[bytes] = await self._domain.link.call("HKEYS", self._keys.log_base)
        return found

    async def links(self) -> list[Neighbour]:
        """The same stores, with how far each of them was seen and who follows it now."""
        seen = await self._domain.link.call("HGETALL", self._keys.log_seen)
        places = {seen[i]: seen[i + 1].decode().partition(" ")[2] for i in range(0, len(seen), 2)}
        return [
            Neighbour(store, places.get(store, ""), await self._follower(store))
            for store in sorted(await self.neighbours())
        ]

    async def _follower(self, neighbour: bytes) -> str:
        found = await self._domain.link.call("GET", self._keys.log_lease(neighbour.decode()))
        return found.decode() if found else ""

    async def numbers(self) -> tuple[Held, Held]:
        """What came and what is gone, as it is written: beside `state`, this changes nothing whatever server it is.

        Of our own numbers only those of older incarnations; the newest are told by the log's figures.
        """
        came = await self._domain.link.call("HGETALL", self._keys.log[2])
        gone = await self._domain.link.call("HGETALL", self._keys.log[3])
        return _held(came), _held(gone)

    async def seen(self, neighbour: bytes, incarnation: bytes) -> str | None:
        """Up to which place of its log all was sent to us, if that is a place in the log of this incarnation."""
        found = await self._domain.link.call("HGET", self._keys.log_seen, neighbour)
        if found is None:
            return None
        of, _, place = found.decode().partition(" ")
        return place if of == incarnation.decode() else None

    async def note_seen(self, neighbour: bytes, incarnation: bytes, place: bytes) -> None:
        """To be said only when everything up to there is stored."""
        await self._domain.link.call("HSET", self._keys.log_seen, neighbour, b"%b %b" % (incarnation, place))

    async def lease(self, neighbour: bytes, holder: str, ttl_ms: int) -> bool:
        """Whether the holder follows this neighbour for all edges of the store; 0 ms lets go."""
        key = self._keys.log_lease(neighbour.decode())
        return bool(await self._domain.function("log_lease", [key], holder, ttl_ms))

    async def _replicated(self, replicas: int) -> None:
        """Raises OutcomeUnknown where the replicas cannot be had: it is asked again."""
        if not replicas:
            return
        # WAIT speaks of this connection's own writes: so it makes one, behind all that is to be kept
        await self._domain.link.call("HINCRBY", self._keys.log[1], "confirmed", 1)
        if await self._domain.link.call("WAIT", replicas, WAIT_MS) < replicas:
            raise OutcomeUnknown
