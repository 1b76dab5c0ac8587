"""Replicate the log between linked stores: this store's identity, the numbers it holds, and storing others' entries.

Every operation can be repeated: numbers that are held already are skipped, from any neighbour. Times in ms.
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
NEIGHBOURS = 1000  # stores to which links were ever set up
WAIT_MS = 2000  # for replicas

Origin = tuple[bytes, bytes]  # store, incarnation
Held = dict[Origin, Intervals]
# called with '' if the queue has the copy, else with its dead letter reason
CopyCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LogState:
    """The log at one moment."""

    store: bytes
    incarnation: bytes
    head: Place
    trimmed: Place  # after the last trimmed entry
    held: Held  # including this store's own numbers
    gone: Held  # the part of `held` that was trimmed


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A store to which a link was ever set up."""

    store: bytes
    seen: str  # its log was received up to this place; '': nothing yet
    follower: str  # "<session> <connection>" of the edge that follows it now; '': none


@dataclass(frozen=True, slots=True)
class Arrived:
    """Received lines of one origin, numbered consecutively from `first`."""

    store: bytes
    incarnation: bytes
    first: int
    messages: int
    bridged: bool
    block: bytes
    copies: list[tuple[int, Queue, bytes]] = field(default_factory=list)  # index of the line, queue, record
    # by index in `copies`: called for copies with a trace context that are made now
    callbacks: dict[int, CopyCallback] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """Numbers that the neighbour has trimmed."""

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
    """Format held numbers for the baseline of a neighbour: one origin per line."""
    lines = (f"{store.decode()} {inc.decode()} {numbers.format()}" for (store, inc), numbers in held.items())
    return "\n".join(lines)


def parse_held(text: bytes) -> Held:
    """Parse the text of `format_held`."""
    held: Held = {}
    for line in text.decode().splitlines():
        store, incarnation, numbers = line.split(" ")
        held[store.encode(), incarnation.encode()] = Intervals.parse(numbers)
    return held


def _notify(callbacks: dict[int, CopyCallback], reply: list[Any]) -> None:
    """Take the outcomes of copies off the end of the reply, and call their callbacks."""
    if callbacks and isinstance(reply[-1], list):  # older libraries do not report them
        outcomes = iter(reply.pop())
        for number, reason in zip(outcomes, outcomes, strict=True):
            if number in callbacks:  # others already had a context
                callbacks[number](reason.decode())


class Replica:
    """The log as a replica of other stores' logs. Methods raise StoreError."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._domain: Domain = log.domain
        self._keys = log.keys

    async def state(self, last_held: int = 0) -> LogState:
        """Return the present state. A new incarnation begins if the store's server has changed.

        last_held: the last number of this incarnation that a neighbour holds. If it was not given out yet, this store
        lost data unnoticed, and a new incarnation begins, too.
        """
        reply = await self._domain.function("log_state", list(self._keys.log), last_held)
        store, incarnation, given, head, trimmed, held_pairs, gone_pairs = reply
        held = _held(held_pairs)
        if int(given):
            held[store, incarnation] = Intervals.parse(f"1-{given.decode()}")
        return LogState(store, incarnation, parse_place(head), parse_place(trimmed), held, _held(gone_pairs))

    async def accept(self, items: list[Arrived | Gap], known: Subscriptions) -> tuple[int, int]:
        """Store the lines that are not held yet and their copies atomically; return (messages, missing numbers).

        Raises BindingsChanged if `known`, by which the copies were made, is out of date.
        """
        queues: dict[str, tuple[int, Queue]] = {}
        args: list[Any] = []
        callbacks: dict[int, CopyCallback] = {}
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
            callbacks |= {number + index: callback for index, callback in item.callbacks.items()}
            number += len(item.copies)
        keys = [*self._keys.log, *(key for _, queue in queues.values() for key in queue.keys)]
        if callbacks:
            keys.append(self._domain.keys.epoch)  # the reply then has the copies' outcomes (lua/links.lua)
        began = time.monotonic()
        reply = await self._domain.function(
            "log_accept", keys, known.version, self._keys.wake_channel, len(queues), *args
        )
        if isinstance(reply, bytes):
            raise refused_as(reply) or StoreError(reply.decode())
        _notify(callbacks, reply)
        replicas = max([self._log.replicas, *(queue.replicas for _, queue in queues.values())])
        await self._replicated(replicas)
        self._count(reply[2:], [queue for _, queue in queues.values()], time.monotonic() - began)
        return int(reply[0]), int(reply[1])

    def _count(self, copies: list[int], queues: list[Queue], seconds: float) -> None:
        """Count copies: index of the queue, messages and octets, for each queue that got some."""
        tallies = self._domain.tallies
        tallies.answered(seconds)
        for i in range(0, len(copies), 3):
            tallies.accept(queues[copies[i]], copies[i + 1], copies[i + 2])

    async def baseline(self, neighbour: bytes, held: Held) -> Held:
        """Return what the neighbour held when the link was first set up: `held`, if that is now. It is kept for ever.

        Raises NumbersScattered if it is too long or there are too many neighbours, NotInitialised if the store is
        empty.
        """
        key, link = self._keys.log_base, self._domain.link
        if await link.call("HEXISTS", key, neighbour) == 0:
            text = format_held(held)
            if len(text) > BASELINE_BYTES or await link.call("HLEN", key) >= NEIGHBOURS:
                raise NumbersScattered
            await link.call("HSETNX", key, neighbour, text)
        await self._replicated(self._log.replicas)  # its writer may have failed before it was replicated
        kept = await link.call("HGET", key, neighbour)
        if kept is None:  # it was there just now
            raise NotInitialised
        return parse_held(kept)

    async def neighbours(self) -> list[bytes]:
        """Return the stores to which a link was ever set up."""
        found: list[bytes] = await self._domain.link.call("HKEYS", self._keys.log_base)
        return found

    async def links(self) -> list[Neighbour]:
        """Return these stores, each with its last received place and its follower."""
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
        """Return the received and the trimmed numbers. Unlike `state`, it never begins an incarnation.

        Own numbers are only those of older incarnations; the present ones are in the log's figures.
        """
        came = await self._domain.link.call("HGETALL", self._keys.log[2])
        gone = await self._domain.link.call("HGETALL", self._keys.log[3])
        return _held(came), _held(gone)

    async def seen(self, neighbour: bytes, incarnation: bytes) -> str | None:
        """Return the place up to which the neighbour's log was received, None if it is of another incarnation."""
        found = await self._domain.link.call("HGET", self._keys.log_seen, neighbour)
        if found is None:
            return None
        of, _, place = found.decode().partition(" ")
        return place if of == incarnation.decode() else None

    async def note_seen(self, neighbour: bytes, incarnation: bytes, place: bytes) -> None:
        """Record that the neighbour's log is stored up to a place."""
        await self._domain.link.call("HSET", self._keys.log_seen, neighbour, b"%b %b" % (incarnation, place))

    async def lease(self, neighbour: bytes, holder: str, ttl_ms: int) -> bool:
        """Take or renew the lease to follow a neighbour; return whether the holder has it. ttl_ms=0 releases it."""
        key = self._keys.log_lease(neighbour.decode())
        return bool(await self._domain.function("log_lease", [key], holder, ttl_ms))

    async def _replicated(self, replicas: int) -> None:
        """Wait for the replicas. Raises OutcomeUnknown if they do not confirm."""
        if not replicas:
            return
        # WAIT covers only writes of this connection, so make one after all that is to be kept
        await self._domain.link.call("HINCRBY", self._keys.log[1], "confirmed", 1)
        if await self._domain.link.call("WAIT", replicas, WAIT_MS) < replicas:
            raise OutcomeUnknown
