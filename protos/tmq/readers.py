"""Parse bytes into events: one function per shape of request, and the table of codes.

A reader is pure. It gets the input, where a request begins in it, the operation and the limits, and returns
- (event, where the next request begins),
- (Refusal, where the body to be skipped begins),
- (None, how many bytes the request needs at least).
Readers check the length of a request before they read beyond its head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from protos.runs import U32, count_run, read_records
from protos.tmq.events import (
    Close,
    Create,
    Delete,
    Dequeue,
    Enqueue,
    Event,
    Open,
    Refused,
    Select,
    TransactionAbort,
    TransactionEnd,
    TransactionStart,
)
from protos.tmq.wire import (
    CODES,
    ENQ_HEAD_BYTES,
    LONE_FIVE,
    MQID_HEAD_BYTES,
    MQID_STARTS,
    NAME_HEAD_BYTES,
    Dialect,
    Limits,
    Operation,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request to be refused once its body has been skipped."""

    refused: Refused
    body_bytes: int  # 0 if the connection will be closed


Found = Event | Refusal | None
Reader = Callable[[bytes, int, Operation, Limits], tuple[Found, int]]


class Row(NamedTuple):
    """The meaning of a code in a dialect."""

    read: Reader
    operation: Operation
    is_unambiguous: bool  # a client that uses this code does not mean TS by a lone 5 (3.1)


def read_name(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read CREATE, DELETE or OPEN: code, u32 N, N bytes (2.1)."""
    name = start + NAME_HEAD_BYTES
    if len(data) < name:
        return None, NAME_HEAD_BYTES
    (size,) = U32.unpack_from(data, name - U32.size)
    if not 0 < size <= limits.max_name_bytes:
        reason = "name_too_long" if size else "bad_name"
        return _refusal(operation, reason, size, limits.max_name_discard_bytes), name
    end = name + size
    if len(data) < end:
        return None, NAME_HEAD_BYTES + size
    return _NAMED[operation](data[name:end]), end


def read_close(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read CLOSE: code, MQID."""
    end = start + MQID_HEAD_BYTES
    if len(data) < end:
        return None, MQID_HEAD_BYTES
    return Close(data[start + 1 : end]), end


def read_enq(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read a run of ENQs of one MQID: code, MQID, u32 N, N bytes (7.1).

    The run ends before another request, a bad length or missing bytes.
    """
    if len(data) - start < ENQ_HEAD_BYTES:
        return None, ENQ_HEAD_BYTES
    head = data[start : start + MQID_HEAD_BYTES]
    records, end = read_records(data, start, head, limits.max_message_bytes)
    if records:
        return Enqueue(head[1:], records), end
    (size,) = U32.unpack_from(data, start + MQID_HEAD_BYTES)
    if size <= limits.max_message_bytes:
        return None, ENQ_HEAD_BYTES + size
    refusal = _refusal(operation, "message_too_large", size, limits.max_discard_bytes)
    return refusal, start + ENQ_HEAD_BYTES


def read_mqid_run(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read a run of DNQs or SELECTs of one MQID: code, MQID."""
    if len(data) - start < MQID_HEAD_BYTES:
        return None, MQID_HEAD_BYTES
    request = data[start : start + MQID_HEAD_BYTES]
    count = count_run(data, start, request)
    return _COUNTED[operation](request[1:], count), start + count * MQID_HEAD_BYTES


def read_five(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read the document's 5: TS unless an MQID follows, else DNQ, or SELECT if so configured (3.1)."""
    if len(data) == start + 1:
        return None, 2  # decided by the next byte, FIN or timeout
    if data[start + 1] not in MQID_STARTS:
        return _PLAIN[Operation.TS], start + 1
    meant = Operation.SELECT if limits.code5_mqid_is_select else operation
    return read_mqid_run(data, start, meant, limits)


def read_plain(data: bytes, start: int, operation: Operation, limits: Limits) -> tuple[Found, int]:
    """Read TS, TE or TA: a code alone."""
    return _PLAIN[operation], start + 1


def _refusal(operation: Operation, reason: str, size: int, max_discard_bytes: int) -> Refusal:
    """Refuse a name or body of `size` bytes: skip it if it is short enough, else close the connection."""
    close = size > max_discard_bytes
    return Refusal(Refused(operation, reason, close), 0 if close else size)


_NAMED: dict[Operation, Callable[[bytes], Event]] = {
    Operation.CREATE: Create,
    Operation.DELETE: Delete,
    Operation.OPEN: Open,
}
_COUNTED: dict[Operation, Callable[[bytes, int], Event]] = {Operation.DNQ: Dequeue, Operation.SELECT: Select}
# Shared objects without fields: one byte of input must stay cheap.
_PLAIN: dict[Operation, Event] = {
    Operation.TS: TransactionStart(),
    Operation.TE: TransactionEnd(),
    Operation.TA: TransactionAbort(),
}
_READERS: dict[Operation, Reader] = {
    Operation.CREATE: read_name,
    Operation.DELETE: read_name,
    Operation.OPEN: read_name,
    Operation.CLOSE: read_close,
    Operation.ENQ: read_enq,
    Operation.DNQ: read_mqid_run,
    Operation.SELECT: read_mqid_run,
    Operation.TS: read_plain,
    Operation.TE: read_plain,
    Operation.TA: read_plain,
}
ROWS: dict[Dialect, dict[int, Row]] = {
    dialect: {code: Row(_READERS[operation], operation, False) for code, operation in codes.items()}
    for dialect, codes in CODES.items()
}
ROWS[Dialect.DOCUMENT] |= {
    LONE_FIVE: Row(read_five, Operation.DNQ, False),
    8: Row(read_plain, Operation.TS, True),
    9: Row(read_mqid_run, Operation.SELECT, True),
}
