r"""Encode and parse the file of a journal, which holds one message and detects any damage.

    offset  octets
         0       8  "PSJRNL1\n"
         8      16  name of the run that received the message; numbers in the store belong to it
        24       8  number of the message in that run, from 1
        32       4  length of the next message when it was peeked at, 0xffffffff if that failed
        36       4  CRC-32 of mtype and body at that time
        40       2  format of the mapping: 0 raw, 1 t_msg
        42       2  octets of the queue's name
        44     256  name of the mapping's queue
       300       4  CRC-32 of all above (the plan)
       304       4  octets of the body
       308       4  CRC-32 of 8 to 300, this length, mtype and body (the receipt)
       312       8  "STRUCK!\n" once the message is durable in the store
       320       8  mtype, as the kernel writes it: 0 before `msgrcv`
       328          body, as the kernel writes it

Integers are little-endian, except mtype, which is in native order. The plan is written before `msgrcv`, mtype and body
by `msgrcv` itself, the receipt right after it. A process that is killed between the two leaves a message without a
receipt, whose length is then known from the peek.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

from services.sysv.settings import Format

MAGIC = b"PSJRNL1\n"
STRUCK = b"STRUCK!\n"
PLAN = struct.Struct("<8s16sQIIHH256s")
CRC = struct.Struct("<I")
RECEIPT = struct.Struct("<II")  # length, CRC-32
KERNEL_LONG = struct.Struct("@l")
RECEIPT_AT = PLAN.size + CRC.size
STRUCK_AT = RECEIPT_AT + RECEIPT.size
MTYPE_AT = STRUCK_AT + len(STRUCK)
BODY_AT = MTYPE_AT + KERNEL_LONG.size
UNSEEN = 0xFFFFFFFF
FORMATS = (Format.RAW, Format.T_MSG)


@dataclass(frozen=True, slots=True)
class Plan:
    """The data known before a message is received."""

    journal: str  # the run's name, 32 hexadecimal digits
    number: int
    format: Format
    queue: str
    seen_length: int = UNSEEN
    seen_crc: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A message that was received from a local queue."""

    journal: str
    number: int
    format: Format
    queue: str
    mtype: int
    body: bytes


class Damaged(ValueError):
    """A damaged file, which may have held a message."""


def encode_plan(plan: Plan) -> bytes:
    """Encode the file up to the body, without a message."""
    name = plan.queue.encode("utf-8", "surrogateescape")
    packed = PLAN.pack(
        MAGIC,
        bytes.fromhex(plan.journal),
        plan.number,
        plan.seen_length,
        plan.seen_crc,
        FORMATS.index(plan.format),
        len(name),
        name,
    )
    return packed + CRC.pack(crc32(packed)) + bytes(BODY_AT - RECEIPT_AT)


def encode_receipt(data: bytes | memoryview, length: int) -> bytes:
    """Encode the receipt of a file `data` with mtype and a body of `length` octets."""
    return RECEIPT.pack(length, _receipt_crc(data, length))


def encode_record(record: Record) -> bytes:
    """Encode the file with a message."""
    plan = encode_plan(Plan(record.journal, record.number, record.format, record.queue))
    data = plan[:MTYPE_AT] + KERNEL_LONG.pack(record.mtype) + record.body
    return data[:RECEIPT_AT] + encode_receipt(data, len(record.body)) + data[STRUCK_AT:]


def _receipt_crc(data: bytes | memoryview, length: int) -> int:
    crc = crc32(data[len(MAGIC) : PLAN.size])
    return crc32(data[MTYPE_AT : BODY_AT + length], crc32(CRC.pack(length), crc))


def parse(data: bytes) -> Record | None:
    """Return the pending message in a file, or None. Raises Damaged."""
    if len(data) < BODY_AT:
        raise Damaged(f"it has only {len(data)} octets")
    length, crc = RECEIPT.unpack_from(data, RECEIPT_AT)
    if _mtype(data) > 0 and length <= len(data) - BODY_AT and crc == _receipt_crc(data, length):
        record = _record(data, length)
        return None if data[STRUCK_AT:MTYPE_AT] == STRUCK else record
    if CRC.unpack_from(data, PLAN.size)[0] != crc32(data[: PLAN.size]):
        raise Damaged("its checksums are wrong")
    return _unfinished(data)


def _unfinished(data: bytes) -> Record | None:
    """Parse a file with a plan and without a valid receipt."""
    if any(data[RECEIPT_AT:STRUCK_AT]):
        raise Damaged("the message's checksum is wrong")
    plan = _plan(data)
    if _mtype(data) == 0:
        return None
    end = BODY_AT + plan.seen_length
    if plan.seen_length == UNSEEN or end > len(data) or crc32(data[MTYPE_AT:end]) != plan.seen_crc:
        raise Damaged("a message was received, but its length is unknown")
    return _record(data, plan.seen_length)


def _plan(data: bytes) -> Plan:
    _, journal, number, seen_length, seen_crc, kind, size, name = PLAN.unpack_from(data)
    if kind >= len(FORMATS) or size > len(name) or number == 0:
        raise Damaged("its fields are invalid")
    queue = name[:size].decode("utf-8", "surrogateescape")
    return Plan(journal.hex(), number, FORMATS[kind], queue, seen_length, seen_crc)


def _record(data: bytes, length: int) -> Record:
    plan = _plan(data)
    body = data[BODY_AT : BODY_AT + length]
    return Record(plan.journal, plan.number, plan.format, plan.queue, _mtype(data), body)


def _mtype(data: bytes) -> int:
    return int(KERNEL_LONG.unpack_from(data, MTYPE_AT)[0])
