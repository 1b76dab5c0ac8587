"""Helpers of the TMQ tests: sample MQIDs, and ways to feed a connection and compare its events."""

import struct
from collections.abc import Iterable

from protos.tmq import Connection, Dequeue, Dialect, Enqueue, Event, Limits, Select, encode_create, mqid_of
from tests.protos.feeding import feed

ORDERS = mqid_of(b"orders")
BILLS = mqid_of(b"bills")
TIGHT = Limits(max_message_bytes=40, max_discard_bytes=400, max_name_bytes=8, max_name_discard_bytes=80)
PATIENT = Limits(lone_five_grace_s=0.25, request_timeout_s=32.0)  # exact in binary: sums can be compared
TE = b"\x06"  # a whole request: valid input to follow
FIVE = b"\5"
LATE = (TE, encode_create(b"q"), b"\xff", b"\4")  # valid and invalid: none of it may count


def u32(number: int) -> bytes:
    """Return a length as sent."""
    return struct.pack(">I", number)


def enq_head(size: int) -> bytes:
    """Return an ENQ that announces `size` bytes, without them."""
    return b"\4" + ORDERS + u32(size)


def document(limits: Limits | None = None) -> Connection:
    """Return a fresh connection of the document dialect."""
    return Connection(Dialect.DOCUMENT, limits or Limits())


def events_of(data: bytes, dialect: Dialect = Dialect.DOCUMENT, limits: Limits | None = None) -> list[Event]:
    """Return the events of one chunk on a fresh connection."""
    return list(Connection(dialect, limits or Limits()).receive(data, 0.0))


def outcome(connection: Connection, chunks: Iterable[bytes]) -> tuple[list[Event], str | None]:
    """Return the outcome of `feed`, runs merged."""
    events, reason = feed(connection, chunks)
    return merged(events), reason


def merged(events: Iterable[Event]) -> list[Event]:
    """Merge runs: only their boundaries may depend on the chunks."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Enqueue) and isinstance(last, Enqueue) and event.mqid == last.mqid:
            result[-1] = Enqueue(event.mqid, last.records + event.records)
        elif isinstance(event, Dequeue | Select) and type(event) is type(last) and event.mqid == last.mqid:
            result[-1] = type(event)(event.mqid, last.count + event.count)
        else:
            result.append(event)
    return result
