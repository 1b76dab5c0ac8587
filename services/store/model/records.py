"""Encode and decode records: the messages inside an entry.

    u8 flags | u24 length | [u16 length, msgpack attributes, if flag 1] | body

`length` counts everything after the first four octets. A message without attributes is therefore a u32 length and the
body, as TMQ sends it, so that the TMQ edge passes records through unchanged.
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
    """A decoded message: the original body, and the attributes that its protocol gave it."""

    body: bytes  # as the client sent it
    attributes: Mapping[str, Any]  # by name, of MessagePack's types


def encode(body: bytes, attributes: Mapping[str, Any] | None = None) -> bytes:
    """Encode one record.

    Args:
        body: Any octets.
        attributes: By name, of MessagePack's types; up to 64 KiB encoded.

    Raises:
        ValueError: If it would have 16 MiB or more.
    """
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
    """Decode one whole record. Raises ValueError if it is damaged."""
    if len(record) < HEAD.size:
        raise ValueError("a record has at least four octets")
    head: int = HEAD.unpack_from(record)[0]
    if head & MAX_LENGTH != len(record) - HEAD.size:
        raise ValueError("the record's length field does not match its size")
    if not head & HAS_ATTRIBUTES:
        return Content(record[4:], {})
    if len(record) < 6 or (end := 6 + ATTRIBUTES_HEAD.unpack_from(record, 4)[0]) > len(record):
        raise ValueError("the record's attributes exceed the record")
    attributes = msgpack.unpackb(record[6:end])
    if not isinstance(attributes, dict):
        raise ValueError("the record's attributes are not a map")
    return Content(record[end:], attributes)


def packed_attributes(record: bytes) -> bytes:
    """Return a record's attributes as encoded; b'' without attributes or if it is damaged."""
    if not record[:1] or not record[0] & 1 or len(record) < 6:
        return b""
    return record[6 : 6 + ATTRIBUTES_HEAD.unpack_from(record, 4)[0]]


def body_length(record: bytes) -> int:
    """Return the octets of a record's body, without its attributes."""
    head: int = HEAD.unpack_from(record)[0]
    attributes = (
        ATTRIBUTES_HEAD.size + ATTRIBUTES_HEAD.unpack_from(record, 4)[0] if head & HAS_ATTRIBUTES else 0
    )
    return (head & MAX_LENGTH) - attributes


def split(blob: bytes, count: int) -> list[bytes]:
    """Split an entry into its `count` records, heads included."""
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
    """Return the offset at which the first `count` records of an entry end."""
    end = 0
    unpack = HEAD.unpack_from
    for _ in range(count):
        end += 4 + (unpack(blob, end)[0] & MAX_LENGTH)
    return end


def pack(records: list[bytes]) -> list[tuple[int, int, bytes]]:
    """Pack records into entries of at most 32 messages and about 4 KiB: (messages, octets without heads, records)."""
    entries = []
    start, total, size = 0, len(records), 0
    # short runs usually fit one entry
    if total * (len(records[0]) + 4) <= ENTRY_BYTES and total <= PER_ENTRY:
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
    """Return the records without attributes: u32 length and body each. Records without any are not copied."""
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
