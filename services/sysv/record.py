"""The file of a journal: one message on its way, so written that whatever becomes of the file, it is told apart.

    offset  octets
         0       8  "PSJRNL1\\n"
         8      16  name of the run that took the message out: the store counts its numbers under it
        24       8  number of the message in that run, from 1
        32       4  how long the next message was when we looked at it, 0xffffffff if we could not
        36       4  CRC-32 of what we saw then: mtype and body
        40       2  format of the mapping: 0 raw, 1 t_msg
        42       2  octets of the queue's name
        44     256  name of the mapping's queue
       300       4  CRC-32 of all that (the plan)
       304       4  octets of the body
       308       4  CRC-32 of 8 to 300, this length, mtype and body (the receipt)
       312       8  "STRUCK!\\n" once the message is durable in the store
       320       8  mtype, as the kernel writes it: 0 before `msgrcv`
       328          body, as the kernel writes it

Integers are little-endian, but for mtype, which is in the machine's own order. The plan is written before `msgrcv`,
mtype and body by `msgrcv` itself, the receipt right after it. A process that is killed between the two leaves a message
without a receipt: what was seen before tells how long it is.
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
    """What is known before a message is taken."""

    journal: str  # the run's name, 32 hexadecimal digits
    number: int
    format: Format
    queue: str
    seen_length: int = UNSEEN
    seen_crc: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A message that was taken out of a local queue."""

    journal: str
    number: int
    format: Format
    queue: str
    mtype: int
    body: bytes


class Damaged(ValueError):
    """The file cannot be trusted: it may have held a message."""


def encode_plan(plan: Plan) -> bytes:
    """The file up to the body, with nothing received."""
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
    """`data`: the file, with mtype and a body of so many octets in it."""
    return RECEIPT.pack(length, _receipt_crc(data, length))


def encode_record(record: Record) -> bytes:
    """The file, with this message in it."""
    plan = encode_plan(Plan(record.journal, record.number, record.format, record.queue))
    data = plan[:MTYPE_AT] + KERNEL_LONG.pack(record.mtype) + record.body
    return data[:RECEIPT_AT] + encode_receipt(data, len(record.body)) + data[STRUCK_AT:]


def _receipt_crc(data: bytes | memoryview, length: int) -> int:
    crc = crc32(data[len(MAGIC) : PLAN.size])
    return crc32(data[MTYPE_AT : BODY_AT + length], crc32(CRC.pack(length), crc))


def parse(data: bytes) -> Record | None:
    """The message in a journal's file, None if none is on its way. Raises Damaged."""
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
    """There is a plan and no receipt that is true."""
    if any(data[RECEIPT_AT:STRUCK_AT]):
        raise Damaged("the message's checksum is wrong")
    plan = _plan(data)
    if _mtype(data) == 0:
        return None
    end = BODY_AT + plan.seen_length
    if plan.seen_length == UNSEEN or end > len(data) or crc32(data[MTYPE_AT:end]) != plan.seen_crc:
        raise Damaged("it was taken out of the local queue, and nothing tells how long it is")
    return _record(data, plan.seen_length)


def _plan(data: bytes) -> Plan:
    _, journal, number, seen_length, seen_crc, kind, size, name = PLAN.unpack_from(data)
    if kind >= len(FORMATS) or size > len(name) or number == 0:
        raise Damaged("its fields are not what we write")
    queue = name[:size].decode("utf-8", "surrogateescape")
    return Plan(journal.hex(), number, FORMATS[kind], queue, seen_length, seen_crc)


def _record(data: bytes, length: int) -> Record:
    plan = _plan(data)
    body = data[BODY_AT : BODY_AT + length]
    return Record(plan.journal, plan.number, plan.format, plan.queue, _mtype(data), body)


def _mtype(data: bytes) -> int:
    return int(KERNEL_LONG.unpack_from(data, MTYPE_AT)[0])
