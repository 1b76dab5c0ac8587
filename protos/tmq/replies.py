"""Encode replies, and parse them for a client (tmq.md 2.2, 3, 4).

The reply to a DNQ is the record of the message (`u32 N, N bytes`, see `encode_record`), or EMPTY.
"""

from typing import Final

from protos.tmq.wire import I32, I64, MQID_BYTES, Dialect, Operation
from protos.types import LocalError

EMPTY: Final = I32.pack(-1)  # the reply to a DNQ without a message or with an unusable MQID
UNUSABLE: Final = -1  # the count in a SELECT's reply for an unusable MQID

_NIL = {
    Dialect.DOCUMENT: b"<nil>" + b"0" * 59,
    Dialect.REFERENCE: (b"<NIL>" + b"0" * 27) * 2,
}
_COUNT = {Dialect.DOCUMENT: I64, Dialect.REFERENCE: I32}
_MAX_COUNT = {dialect: (1 << 8 * layout.size - 1) - 1 for dialect, layout in _COUNT.items()}
_ZERO_IS_SUCCESS = (b"\0", b"\1")  # (success, failure)
_ONE_IS_SUCCESS = (b"\1", b"\0")  # only the document's ENQ
_WITHOUT_STATUS = {Operation.OPEN, Operation.DNQ, Operation.SELECT}
_REFERENCE_STATUS = dict.fromkeys(set(Operation) - _WITHOUT_STATUS, _ZERO_IS_SUCCESS)
_STATUS = {
    Dialect.DOCUMENT: {**_REFERENCE_STATUS, Operation.ENQ: _ONE_IS_SUCCESS},
    Dialect.REFERENCE: _REFERENCE_STATUS,
}


def encode_status(dialect: Dialect, operation: Operation, ok: bool) -> bytes:
    """Return the 1-byte status. Raises LocalError for OPEN, DNQ and SELECT, which have none."""
    success, failure = _statuses(dialect, operation)
    return success if ok else failure


def nil_mqid(dialect: Dialect) -> bytes:
    """Return the reply to an OPEN of an unknown or bad name, 64 bytes (2.2)."""
    return _NIL[dialect]


def encode_count(dialect: Dialect, count: int) -> bytes:
    """Return the reply to a SELECT: i64 (document) or i32, saturated (reference)."""
    return _COUNT[dialect].pack(min(count, _MAX_COUNT[dialect]))


def encode_failure(dialect: Dialect, operation: Operation) -> bytes:
    """Return the reply of failure to any operation."""
    match operation:
        case Operation.OPEN:
            return nil_mqid(dialect)
        case Operation.DNQ:
            return EMPTY
        case Operation.SELECT:
            return encode_count(dialect, UNUSABLE)
        case _:
            return encode_status(dialect, operation, ok=False)


def reply_bytes(dialect: Dialect, operation: Operation) -> int:
    """Return the size of the reply in bytes; for DNQ that of its head, which has the length of the body."""
    return len(encode_failure(dialect, operation))


def parse_status(dialect: Dialect, operation: Operation, reply: bytes) -> bool:
    """Return whether the operation succeeded. Raises ValueError for any other byte."""
    success, failure = _statuses(dialect, operation)
    if reply not in (success, failure):
        raise ValueError(f"not a status: {reply!r}")
    return reply == success


def parse_mqid(reply: bytes) -> bytes | None:
    """Return the MQID in a reply to OPEN, None for nil (2.2). Raises ValueError unless it has 64 bytes."""
    if len(reply) != MQID_BYTES:
        raise ValueError(f"not an MQID: {len(reply)} bytes")
    return None if reply[:5].lower() == b"<nil>" else reply


def parse_length(head: bytes) -> int | None:
    """Return the length of the body after the 4-byte head of a DNQ's reply, None for EMPTY. Raises ValueError."""
    (length,) = I32.unpack(head)
    if length < -1:
        raise ValueError(f"not a length: {length}")
    return None if length == -1 else int(length)


def parse_count(dialect: Dialect, reply: bytes) -> int:
    """Return the number of messages in a reply to SELECT, or UNUSABLE."""
    (count,) = _COUNT[dialect].unpack(reply)
    return int(count)


def _statuses(dialect: Dialect, operation: Operation) -> tuple[bytes, bytes]:
    """Return the status bytes (success, failure). Raises LocalError."""
    try:
        return _STATUS[dialect][operation]
    except KeyError:
        raise LocalError(f"{operation.name} has no status reply") from None
