"""The log of the text service: append to it, and read ranges of it.

A store has one log, in one domain, so that a queue and the log can be changed atomically. Its layout and numbering are
described in lua/schema.lua, lua/log.lua and docs/pubsub.md.
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
from services.store.redis.connect import parse_info
from services.store.redis.link import Link

log = logging.getLogger(__name__)

READ_ENTRIES = 1000  # per read at most; the octets are bounded by the eras (lua/log.lua)


class Place(NamedTuple):
    """A position in the log, after an entry. Greater is later; serials differ by the number of messages between."""

    era: int  # when the incarnation began, in ms, plus 1 for each MiB of it
    serial: int  # number of messages up to here since the log began

    def __str__(self) -> str:
        return f"{self.era}-{self.serial}"


START = Place(0, 0)


def parse_place(text: bytes | str) -> Place:
    """Parse '<era>-<serial>'. Raises ValueError."""
    if isinstance(text, bytes):
        text = text.decode()
    era, _, serial = text.partition("-")
    return Place(int(era), int(serial))


class Entry(NamedTuple):
    """An entry of the log: one or more lines."""

    place: Place  # after it
    messages: int  # one per line
    origin: bytes  # b"<store> <incarnation>"
    first: int  # number of its first message within the origin
    bridged: bool  # it came from a queue
    block: bytes  # b"SEND <tag> <message>\n" per message


def parse_entries(reply: list[Any]) -> list[Entry]:
    """Parse a reply to XRANGE or XREAD. Raises StoreFault for a foreign entry."""
    try:
        return [  # n t o f x b, as lua/log.lua writes them
            Entry(parse_place(key), int(f[1]), f[5], int(f[7]), f[9] == b"1", f[11]) for key, f in reply
        ]
    except (ValueError, IndexError) as error:
        raise StoreFault(f"the text service's log has a foreign entry: {error}") from error


def read_command(stream: str, after: Place, until: Place | None = None) -> tuple[str | int, ...]:
    """Return the command to read the rest of the era of `after`: 1 MiB at most, or one longer line."""
    end = str(after.era if until is None or until.era > after.era else until)
    return ("XRANGE", stream, f"({after}", end, "COUNT", READ_ENTRIES)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A queue that gets copies of messages whose tags match its patterns."""

    queue: Queue
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """All subscriptions of queues, with their version."""

    version: str
    queues: tuple[Subscription, ...]


NO_SUBSCRIPTIONS = Subscriptions("0", ())


@dataclass(frozen=True, slots=True)
class LogSpec:
    """The log's settings, which must be the same for all edges of a store."""

    ack_level: str = "fsync"
    retention_ms: int = 24 * 3600 * 1000
    max_bytes: int = 1 << 30  # of the store's memory


class Log:
    """The log of a domain. Methods raise StoreError or pass it to their callbacks."""

    def __init__(self, domain: Domain, spec: LogSpec) -> None:
        self.domain = domain
        self.keys = domain.keys
        self.use(spec)
        # so that heartbeats do not wait for long replies
        self._reading = Link(domain.link.connector, self.keys.epoch)

    def use(self, spec: LogSpec) -> None:
        """Set the settings, once the ack level is known."""
        self.spec = spec
        self.replicas = replicas_of(spec.ack_level)

    async def level(self) -> str:
        """Return the ack level with which the log was declared, '' if it was not."""
        found = await self.domain.link.call("HGET", self.keys.log[1], "level")
        return (found or b"").decode()

    async def declare(self) -> None:
        """Write the settings to the store; call it before `send`. The last declaration wins; a change is logged."""
        spec = self.spec
        found = await self.domain.link.call("HMGET", self.keys.log[1], "level", "retention", "max_bytes")
        wanted = [str(value).encode() for value in (spec.ack_level, spec.retention_ms, spec.max_bytes)]
        if found[0] is not None and found != wanted:
            before, now = (b", ".join(values).decode() for values in (found, wanted))
            fields = {"action": "log_settings_changed", "before": before, "now": now}
            log.warning("log settings changed; edges of one store must have the same settings", extra=fields)
        settings = (spec.ack_level, spec.retention_ms, spec.max_bytes)
        await self.domain.function("log_declare", [self.keys.log[1]], *settings)

    async def close(self) -> None:
        """Close the connection of `read`; the domain stays open."""
        await self._reading.close()

    def send(self, source: Source, send: Send) -> None:
        """Append to the log (see `LogVerbs.send`)."""
        self.domain.pipe.log.send(source, send, self.replicas)

    def head(self, source: Source, placed: Placed) -> None:
        """Ask for the end of the log, to be parsed by `parse_place` (see `LogVerbs.head`)."""
        self.domain.pipe.log.head(source, placed)

    async def subscriptions(self) -> Subscriptions:
        """Return the present subscriptions of queues. Raises StoreFault for an unreadable one."""
        version, pairs = await self.domain.link.function("log_bindings", self.keys.bindings)
        found = tuple(self._subscription(pairs[i], pairs[i + 1]) for i in range(0, len(pairs), 2))
        return Subscriptions(version.decode(), found)

    def _subscription(self, qid: bytes, document: bytes) -> Subscription:
        try:
            fields = json.loads(document)
            spec = QueueSpec(domain=self.domain.name, ack_level=fields["ackLevel"])
            queue = Queue(str(fields["name"]), qid.decode(), self.domain.name, "", spec)
            patterns = TextBinding(subscribe=fields["patterns"]).subscribe
            return Subscription(queue, patterns)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreFault(f"the subscription of queue id {qid!r} cannot be read: {error}") from error

    async def read(self, after: Place, until: Place | None = None) -> list[Entry]:
        """Return the next entries after a place and not beyond `until`: 1 MiB of lines, or one longer line."""
        stream = self.keys.log[0]
        reply = await self._reading.call(*read_command(stream, after, until))
        if not reply and (until is None or until.era > after.era):
            # only the first entry of a later era, as its size is not bounded by the era of `after`
            end = "+" if until is None else str(until)
            reply = await self._reading.call("XRANGE", stream, f"({after}", end, "COUNT", 1)
        return parse_entries(reply)

    async def trim(self) -> int:
        """Remove entries beyond the retention or the memory bound; return how many messages."""
        trimmed, more = 0, 1
        while more:
            step, more = await self.domain.function("log_trim", list(self.keys.log))
            trimmed += step
        return trimmed

    async def figures(self) -> dict[str, str]:
        """Return the log's hash: counters and sizes (lua/schema.lua)."""
        pairs = await self.domain.link.call("HGETALL", self.keys.log[1])
        return {pairs[i].decode(): pairs[i + 1].decode() for i in range(0, len(pairs), 2)}

    async def size(self) -> tuple[int, int]:
        """Return the number of entries, and when the oldest was stored (ms since 1970; 0 if the log is empty)."""
        link, stream = self.domain.link, self.keys.log[0]
        oldest = await link.call("XRANGE", stream, "-", "+", "COUNT", 1)
        return int(await link.call("XLEN", stream)), int(oldest[0][1][3]) if oldest else 0

    async def bound(self) -> int:
        """Return the memory bound of the log by the server's maxmemory, in octets; 0: none (lua/retention.lua)."""
        info = parse_info(await self.domain.link.call("INFO", "memory"))
        return int(info.get("maxmemory", "0")) // 4
