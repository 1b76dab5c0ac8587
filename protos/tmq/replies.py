"""Replies as bytes, and back for a client (tmq.md 2.2, 3, 4).

The reply to a DNQ is the record of the message (`u32 N, N bytes`, see `encode_record`), or EMPTY.
"""

from typing import Final

from protos.tmq.wire import I32, I64, MQID_BYTES, Dialect, Operation
from protos.types import LocalError

EMPTY: Final = I32.pack(-1)  # a DNQ's reply when there is no message, or no usable MQID
UNUSABLE: Final = -1  # the count that SELECT answers for an MQID that is not usable

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
    """The 1-byte reply of all but OPEN, DNQ and SELECT, which have none: LocalError."""
    success, failure = _statuses(dialect, operation)
    return success if ok else failure


def nil_mqid(dialect: Dialect) -> bytes:
    """The 64 bytes that OPEN answers for an unknown or bad name (2.2)."""
    return _NIL[dialect]


def encode_count(dialect: Dialect, count: int) -> bytes:
    """A SELECT's reply: i64 (document) or i32 (reference, and what does not fit is the largest that does)."""
    return _COUNT[dialect].pack(min(count, _MAX_COUNT[dialect]))


def encode_failure(dialect: Dialect, operation: Operation) -> bytes:
    """The reply that says no to any operation: what `Refused` and a failed store answer."""
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
    """The size of the reply to wait for, in bytes; for DNQ that of its head, which says how much follows."""
    return len(encode_failure(dialect, operation))


def parse_status(dialect: Dialect, operation: Operation, reply: bytes) -> bool:
    """Whether `operation` succeeded. ValueError if the byte is neither of the two."""
    success, failure = _statuses(dialect, operation)
    if reply not in (success, failure):
        raise ValueError(f"not a status: {reply!r}")
    return reply == success


def parse_mqid(reply: bytes) -> bytes | None:
    """The MQID that OPEN answered, or None for nil, told by 5 characters (2.2). ValueError if not 64 long."""
    if len(reply) != MQID_BYTES:
        raise ValueError(f"not an MQID: {len(reply)} bytes")
    return None if reply[:5].lower() == b"<nil>" else reply


def parse_length(head: bytes) -> int | None:
    """Bytes of body that follow the 4-byte head of a DNQ's reply, None for EMPTY. ValueError below -1."""
    (length,) = I32.unpack(head)
    if length < -1:
        raise ValueError(f"not a length: {length}")
    return None if length == -1 else int(length)


def parse_count(dialect: Dialect, reply: bytes) -> int:
    """The number of messages that SELECT answered, or UNUSABLE."""
    (count,) = _COUNT[dialect].unpack(reply)
    return int(count)


def _statuses(dialect: Dialect, operation: Operation) -> tuple[bytes, bytes]:
    """(success, failure)"""
    try:
        return _STATUS[dialect][operation]
    except KeyError:
        raise LocalError(f"{operation.name} is not answered by a status") from None
