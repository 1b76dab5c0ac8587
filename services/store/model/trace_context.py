"""Handle W3C Trace Context, which records carry as the attribute `traceparent`.

The attribute connects the trace of the producer with that of the consumer. If a protocol between two systems has no
field for it, both ends derive the same context from data that they share: see `hop`.
"""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from dataclasses import dataclass
from typing import Any

import msgpack

from services.store.model import records

KEY = "traceparent"
STATE = "tracestate"  # data of other vendors, passed on unread
# Version 00 has four fields; later versions may have more, which are ignored (W3C Trace Context 3.2.2, 4).
_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 1
_KEY = KEY.encode()
_DRAWN = 1 << 32
_HOP = b"penstock hop\0"
_PLACE = b"penstock place\0"


@dataclass(frozen=True, slots=True)
class Context:
    """The identity of a span. Ids are never 0."""

    trace_id: int  # 128 bits
    span_id: int  # 64 bits
    is_sampled: bool = True

    @property
    def header(self) -> str:
        """The value of `traceparent`."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"

    def child(self) -> Context:
        """Return a context for a new span below this one."""
        return Context(self.trace_id, _span_id(), self.is_sampled)


def fresh() -> Context:
    """Return the context of a new trace."""
    return Context(random.getrandbits(128) or 1, _span_id())


def _span_id() -> int:
    return random.getrandbits(64) or 1


def parse(header: object) -> Context | None:
    """Parse a `traceparent` value; None if it is invalid, in which case a new trace begins."""
    found = _HEADER.fullmatch(header) if isinstance(header, str) else None
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5] is not None):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


def of_record(record: bytes) -> Context | None:
    """Return the context that a record carries, or None, also for a damaged record."""
    return of_packed(records.packed_attributes(record))


def of_packed(attributes: bytes) -> Context | None:
    """Return the context in encoded attributes, which are only decoded if they contain one."""
    if _KEY not in attributes:
        return None
    try:
        found = msgpack.unpackb(attributes)
    except ValueError:
        return None
    return parse(found.get(KEY)) if isinstance(found, dict) else None


def of_attributes(attributes: dict[str, Any]) -> Context | None:
    """Return the context in decoded attributes, or None."""
    return parse(attributes.get(KEY))


def without(record: bytes) -> bytes:
    """Return the record without trace attributes, so that repeats with other contexts compare equal."""
    if not record[0]:
        return record
    content = records.decode(record)
    kept = {key: value for key, value in content.attributes.items() if key not in (KEY, STATE)}
    return record if len(kept) == len(content.attributes) else records.encode(content.body, kept)


def stamped(record: bytes, context: Context) -> bytes:
    """Return the record with this context instead of its own. Raises ValueError if it becomes too large."""
    content = records.decode(record)
    return records.encode(content.body, {**content.attributes, KEY: context.header})


def stamped_within(record: bytes, context: Context, most: int) -> bytes | None:
    """Return the record with this context, or None if it would not fit into an empty queue of `most` octets.

    most: 0 = no bound.
    """
    try:
        found = stamped(record, context)
    except ValueError:
        return None
    return None if most and len(found) - records.HEAD.size > most else found


@dataclass(frozen=True, slots=True)
class Hop:
    """A message between two systems, identified by data that both see. Cheap, as most are not sampled."""

    seen: bytes

    def is_sampled(self, ratio: float) -> bool:
        """Return the sampling decision, the same at both ends; a higher ratio includes the messages of a lower one."""
        return zlib.crc32(self.seen) < ratio * _DRAWN

    @property
    def context(self) -> Context:
        """The context of the sender's span, which is the parent of the receiver's."""
        digest = hashlib.sha256(_HOP + self.seen).digest()
        trace_id = int.from_bytes(digest[:16]) or 1
        return Context(trace_id, int.from_bytes(digest[16:24]) or 1)

    def at(self, *place: bytes) -> Context:
        """Return the context of another span of the trace; equal places give equal contexts on all systems."""
        path = b"\0".join((_PLACE + self.seen, *place))
        return Context(self.context.trace_id, int.from_bytes(hashlib.sha256(path).digest()[:8]) or 1)


def hop(protocol: str, *seen: bytes) -> Hop:
    """Return the hop of a message. seen: data that both ends know, and that identifies the message between them."""
    return Hop(b"\0".join((protocol.encode(), *seen)))


def hop_of_request(request: bytes) -> Hop:
    """Return the hop of a ring request, whose id both ends know."""
    return hop("ring", request)
