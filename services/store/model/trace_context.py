"""Where in which trace something stands: W3C Trace Context, as the attribute `traceparent` of a record says it.

A message that is traced carries it from the queue it was put into to whoever takes it out. Between two systems whose
wire has no place for it both ends derive the same one of what they both see: see `hop`.
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
STATE = "tracestate"  # of other vendors, who may put it beside: it is passed on, and says nothing to us
# Version 00 has four fields; of later ones the first four are read (W3C Trace Context 3.2.2, 4).
_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 1
_KEY = KEY.encode()
_DRAWN = 1 << 32
_HOP = b"penstock hop\0"
_PLACE = b"penstock place\0"


@dataclass(frozen=True, slots=True)
class Context:
    """One span's place. Ids are never 0."""

    trace_id: int  # 128 bits
    span_id: int  # 64 bits
    is_sampled: bool = True

    @property
    def header(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"

    def child(self) -> Context:
        return Context(self.trace_id, _span_id(), self.is_sampled)


def fresh() -> Context:
    """The first of a trace."""
    return Context(random.getrandbits(128) or 1, _span_id())


def _span_id() -> int:
    return random.getrandbits(64) or 1


def parse(header: object) -> Context | None:
    """None for what is no context, whatever it is: then the trace begins anew."""
    found = _HEADER.fullmatch(header) if isinstance(header, str) else None
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5] is not None):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


def of_record(record: bytes) -> Context | None:
    """What a record carries. A damaged one carries none: whoever has to look at it will find that out."""
    return of_packed(records.packed_attributes(record))


def of_packed(attributes: bytes) -> Context | None:
    """The same of attributes as they stand in records and dead letters. Most have none, and are not decoded."""
    if _KEY not in attributes:
        return None
    try:
        found = msgpack.unpackb(attributes)
    except ValueError:
        return None
    return parse(found.get(KEY)) if isinstance(found, dict) else None


def of_attributes(attributes: dict[str, Any]) -> Context | None:
    return parse(attributes.get(KEY))


def without(record: bytes) -> bytes:
    """The record as if nobody had ever traced it: what whoever repeats something in a trace of his own repeats."""
    if not record[0]:
        return record
    content = records.decode(record)
    kept = {key: value for key, value in content.attributes.items() if key not in (KEY, STATE)}
    return record if len(kept) == len(content.attributes) else records.encode(content.body, kept)


def stamped(record: bytes, context: Context) -> bytes:
    """The record with the context in place of what it carried. Raises ValueError where that makes it too large."""
    content = records.decode(record)
    return records.encode(content.body, {**content.attributes, KEY: context.header})


def stamped_within(record: bytes, context: Context, most: int) -> bytes | None:
    """The same for a queue of so many octets, 0 = any number; None for one that would not fit with its context in the
    empty queue, and does without."""
    try:
        found = stamped(record, context)
    except ValueError:
        return None
    return None if most and len(found) - records.HEAD.size > most else found


@dataclass(frozen=True, slots=True)
class Hop:
    """A message on its way from one system to another, by what both of them see of it. Cheap: most are not sampled."""

    seen: bytes

    def is_sampled(self, ratio: float) -> bool:
        """The same answer at both ends; with a higher ratio it is yes wherever it is with a lower one."""
        return zlib.crc32(self.seen) < ratio * _DRAWN

    @property
    def context(self) -> Context:
        """Of the span that the sender makes, and the receiver goes on from."""
        digest = hashlib.sha256(_HOP + self.seen).digest()
        trace_id = int.from_bytes(digest[:16]) or 1
        return Context(trace_id, int.from_bytes(digest[16:24]) or 1)

    def at(self, *place: bytes) -> Context:
        """Of another span of the same trace, by where it is: whoever makes it, and however often, it is the same."""
        told = b"\0".join((_PLACE + self.seen, *place))
        return Context(self.context.trace_id, int.from_bytes(hashlib.sha256(told).digest()[:8]) or 1)


def hop(protocol: str, *seen: bytes) -> Hop:
    """seen: what both ends know of the message, and of no other one of theirs."""
    return Hop(b"\0".join((protocol.encode(), *seen)))


def hop_of_request(request: bytes) -> Hop:
    """Of a ring: whoever asks gave it the id, and whoever carries it out is told that."""
    return hop("ring", request)
