"""Records: how a message stands inside an entry.

    u8 flags | u24 length | [u16 length, msgpack attributes, if flag 1] | body

`length` counts everything behind the first four octets. A message without attributes is therefore the same octets as
a u32 length and the body, which is what TMQ sends: its edge hands records through without touching them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

HEAD = struct.Struct(">I")  # flags and length together
ATTRIBUTES_HEAD = struct.Struct(">H")
MAX_LENGTH = (1 << 24) - 1  # octets behind the head
HAS_ATTRIBUTES = 1 << 24
PER_ENTRY = 32  # messages in one entry at most
ENTRY_BYTES = 4096  # an entry is closed when it would grow past this


@dataclass(frozen=True, slots=True)
class Content:
    """A message as edges see it: the body as the original bytes, and what the protocol said beside it."""

    body: bytes
    attributes: Mapping[str, Any]


def encode(body: bytes, attributes: Mapping[str, Any] | None = None) -> bytes:
    """One record. Raises ValueError if it would be 16 MiB or longer."""
    if not attributes:
        if len(body) > MAX_LENGTH:
            raise ValueError(f"a message may have at most {MAX_LENGTH} octets, this one has {len(body)}")
        return HEAD.pack(len(body)) + body
    packed: bytes = msgpack.packb(dict(attributes))
    length = ATTRIBUTES_HEAD.size + len(packed) + len(body)
    if length > MAX_LENGTH or len(packed) > 0xFFFF:
        raise ValueError(f"message and attributes have {length} octets, more than a record can hold")
    return HEAD.pack(HAS_ATTRIBUTES | length) + ATTRIBUTES_HEAD.pack(len(packed)) + packed + body


def decode(record: bytes) -> Content:
    """The content of one whole record. Raises ValueError if it is damaged."""
    if len(record) < HEAD.size:
        raise ValueError("a record has at least four octets")
    head: int = HEAD.unpack_from(record)[0]
    if head & MAX_LENGTH != len(record) - HEAD.size:
        raise ValueError("the record's length is not that of its octets")
    if not head & HAS_ATTRIBUTES:
        return Content(record[4:], {})
    if len(record) < 6 or (end := 6 + ATTRIBUTES_HEAD.unpack_from(record, 4)[0]) > len(record):
        raise ValueError("the record's attributes are longer than it")
    attributes = msgpack.unpackb(record[6:end])
    if not isinstance(attributes, dict):
        raise ValueError("the record's attributes are no map")
    return Content(record[end:], attributes)


def packed_attributes(record: bytes) -> bytes:
    """Of a whole record, as they stand there; b'' if it has none, or is damaged."""
    if not record[:1] or not record[0] & 1 or len(record) < 6:
        return b""
    return record[6 : 6 + ATTRIBUTES_HEAD.unpack_from(record, 4)[0]]


def body_length(record: bytes) -> int:
    """Octets of a whole record's body, without its attributes."""
    head: int = HEAD.unpack_from(record)[0]
    beside = ATTRIBUTES_HEAD.size + ATTRIBUTES_HEAD.unpack_from(record, 4)[0] if head & HAS_ATTRIBUTES else 0
    return (head & MAX_LENGTH) - beside


def split(blob: bytes, count: int) -> list[bytes]:
    """The `count` records of an entry, heads included."""
    if count == 1:
        return [blob]
    records, start = [], 0
    unpack = HEAD.unpack_from
    for _ in range(count):
        end = start + 4 + (unpack(blob, start)[0] & MAX_LENGTH)
        records.append(blob[start:end])
        start = end
    return records


def cut(blob: bytes, count: int) -> int:
    """Where the first `count` records of an entry end."""
    end = 0
    unpack = HEAD.unpack_from
    for _ in range(count):
        end += 4 + (unpack(blob, end)[0] & MAX_LENGTH)
    return end


def pack(records: list[bytes]) -> list[tuple[int, int, bytes]]:
    """Records as entries of at most 32 messages and about 4 KiB: (messages, octets without heads, records)."""
    entries = []
    start, total, size = 0, len(records), 0
    if total * (len(records[0]) + 4) <= ENTRY_BYTES and total <= PER_ENTRY:  # short runs are mostly alike
        joined = b"".join(records)
        if len(joined) <= ENTRY_BYTES:
            return [(total, len(joined) - 4 * total, joined)]
    for index, record in enumerate(records):
        if index - start == PER_ENTRY or (index > start and size + len(record) > ENTRY_BYTES):
            entries.append((index - start, size - 4 * (index - start), b"".join(records[start:index])))
            start, size = index, 0
        size += len(record)
    entries.append((total - start, size - 4 * (total - start), b"".join(records[start:])))
    return entries


def plain(blob: bytes, count: int) -> bytes:
    """The records with their attributes left out: u32 length and body each, which is often what they were."""
    unpack = HEAD.unpack_from
    start = 0
    for _ in range(count):
        head = unpack(blob, start)[0]
        if head & HAS_ATTRIBUTES:
            return b"".join(
                encode(decode(record).body) if record[0] else record for record in split(blob, count)
            )
        start += 4 + head
    return blob
