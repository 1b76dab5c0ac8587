"""The log of the text service as an edge process uses it: appending, places in it, and reading stretches of it.

One log for the whole store, in one domain, so that a queue and the log can be changed in one step. What is in it and
how it is numbered is said in lua/schema.lua and lua/log.lua; docs/pubsub.md explains it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.store.model.errors import StoreFault
from services.store.model.operations import Placed, Send, Source
from services.store.model.queues import Queue
from services.store.model.spec import QueueSpec, replicas_of
from services.store.model.text_binding import TextBinding
from services.store.pipeline.domain import Domain
from services.store.redis.link import Link

log = logging.getLogger(__name__)

READ_ENTRIES = 1000  # of one reading at most; how many octets is bounded by the eras (lua/log.lua)


class Place(NamedTuple):
    """A place in the log: behind an entry. Greater is later; the difference of serials is a number of messages."""

    era: int  # the time at which an incarnation began, in ms, and one more for each MiB of it
    serial: int  # messages in the log up to here, since it began

    def __str__(self) -> str:
        return f"{self.era}-{self.serial}"


START = Place(0, 0)


def parse_place(text: bytes | str) -> Place:
    """Raises ValueError."""
    if isinstance(text, bytes):
        text = text.decode()
    era, _, serial = text.partition("-")
    return Place(int(era), int(serial))


class Entry(NamedTuple):
    """Lines that came together."""

    place: Place  # behind it
    messages: int  # one a line
    origin: bytes  # b"<store> <incarnation>"
    first: int  # number of the first one within its origin
    bridged: bool  # it came from a queue
    block: bytes  # b"SEND <tag> <message>\n" for each


def parse_entries(reply: list[Any]) -> list[Entry]:
    """Entries as XRANGE and XREAD tell them. Raises StoreFault for one that somebody else put there."""
    try:
        return [  # n t o f x b, as lua/log.lua writes them
            Entry(parse_place(key), int(f[1]), f[5], int(f[7]), f[9] == b"1", f[11]) for key, f in reply
        ]
    except (ValueError, IndexError) as error:
        raise StoreFault(f"the text service's log holds what is no entry of it: {error}") from error


def reading_on(stream: str, after: Place, until: Place | None = None) -> tuple[str | int, ...]:
    """The command for what lies behind a place in its era: 1 MiB at most, or one line that is longer."""
    end = str(after.era if until is None or until.era > after.era else until)
    return ("XRANGE", stream, f"({after}", end, "COUNT", READ_ENTRIES)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A queue that wants copies."""

    queue: Queue
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """All of them, as of one version."""

    version: str
    queues: tuple[Subscription, ...]


NO_SUBSCRIPTIONS = Subscriptions("0", ())


@dataclass(frozen=True, slots=True)
class LogSpec:
    """What the log keeps. Edges that share a store say the same."""

    ack_level: str = "fsync"
    retention_ms: int = 24 * 3600 * 1000
    max_bytes: int = 1 << 30  # of the store's memory


class Log:
    """Verbs raise StoreError, or tell it to their callbacks."""

    def __init__(self, domain: Domain, spec: LogSpec) -> None:
        self.domain = domain
        self.keys = domain.keys
        self.use(spec)
        self._reading = Link(
            domain.link.connector, self.keys.epoch
        )  # long replies: heartbeats go another way

    def use(self, spec: LogSpec) -> None:
        """What is known only once the store can be asked what it keeps."""
        self.spec = spec
        self.replicas = replicas_of(spec.ack_level)

    async def level(self) -> str:
        """Return the ack level that it was declared with, '' if it never was."""
        found = await self.domain.link.call("HGET", self.keys.log[1], "level")
        return (found or b"").decode()

    async def declare(self) -> None:
        """Writes what it keeps; to be done before anything is sent. The last to do so is right, and says so."""
        spec = self.spec
        found = await self.domain.link.call("HMGET", self.keys.log[1], "level", "retention", "max_bytes")
        wanted = [str(value).encode() for value in (spec.ack_level, spec.retention_ms, spec.max_bytes)]
        if found[0] is not None and found != wanted:
            before, now = (b", ".join(values).decode() for values in (found, wanted))
            fields = {"action": "log_settings_changed", "before": before, "now": now}
            log.warning(
                "the log keeps something else now: servers of one store must say the same", extra=fields
            )
        await self.domain.function(
            "log_declare", [self.keys.log[1]], spec.ack_level, spec.retention_ms, spec.max_bytes
        )

    async def close(self) -> None:
        await self._reading.close()

    def send(self, source: Source, send: Send) -> None:
        """See `LogVerbs.send`."""
        self.domain.pipe.log.send(source, send, self.replicas)

    def head(self, source: Source, placed: Placed) -> None:
        """See `LogVerbs.head`; `parse_place` reads the answer."""
        self.domain.pipe.log.head(source, placed)

    async def subscriptions(self) -> Subscriptions:
        """The queues that subscribe to the log now."""
        version, pairs = await self.domain.link.function("log_bindings", self.keys.bindings)
        found = tuple(self._subscription(pairs[i], pairs[i + 1]) for i in range(0, len(pairs), 2))
        return Subscriptions(version.decode(), found)

    def _subscription(self, qid: bytes, document: bytes) -> Subscription:
        try:
            said = json.loads(document)
            spec = QueueSpec(domain=self.domain.name, ack_level=said["ackLevel"])
            queue = Queue(str(said["name"]), qid.decode(), self.domain.name, "", spec)
            patterns = TextBinding(subscribe=said["patterns"]).subscribe
            return Subscription(queue, patterns)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreFault(f"what queue id {qid!r} subscribes to cannot be read: {error}") from error

    # reading

    async def read(self, after: Place, until: Place | None = None) -> list[Entry]:
        """Entries behind a place, none of them beyond another one; [] if there are none.

        At most 1 MiB of lines, or one line that is longer.
        """
        stream = self.keys.log[0]
        reply = await self._reading.call(*reading_on(stream, after, until))
        if not reply and (until is None or until.era > after.era):
            # Only the first of a later era: what follows may be trimmed before it is asked for.
            end = "+" if until is None else str(until)
            reply = await self._reading.call("XRANGE", stream, f"({after}", end, "COUNT", 1)
        return parse_entries(reply)

    # upkeep

    async def trim(self) -> int:
        """Drops what is older than the retention or beyond the memory; answers how many messages."""
        gone, more = 0, 1
        while more:
            step, more = await self.domain.function("log_trim", list(self.keys.log))
            gone += step
        return gone

    async def figures(self) -> dict[str, str]:
        """The log's hash as it is: counters and sizes (lua/schema.lua)."""
        pairs = await self.domain.link.call("HGETALL", self.keys.log[1])
        return {pairs[i].decode(): pairs[i + 1].decode() for i in range(0, len(pairs), 2)}

    async def size(self) -> tuple[int, int]:
        """How many entries there are, and when the oldest was stored (ms since 1970; 0: there is none)."""
        link, stream = self.domain.link, self.keys.log[0]
        oldest = await link.call("XRANGE", stream, "-", "+", "COUNT", 1)
        return int(await link.call("XLEN", stream)), int(oldest[0][1][3]) if oldest else 0

    async def bound(self) -> int:
        """Octets of memory that it has here at most, whatever `max_bytes` says (lua/retention.lua); 0: no bound."""
        info = (await self.domain.link.call("INFO", "memory")).decode()
        found = next((line for line in info.split("\r\n") if line.startswith("maxmemory:")), ":0")
        return int(found.partition(":")[2]) // 4
