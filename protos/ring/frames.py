"""Queue operations: the frame that clients and nodes share, and its fields in the ring (ring.md 5.1, 5.3)."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

from protos.ring.messages import MAX_USER_SENT
from protos.types import LocalError

FIELD = 255  # octets of sender_name, and of queue_id, padded with NULs
ECHO = 2 * FIELD  # octets of sender_name and queue_id, which a reply repeats
MAX_FIELD_NAME = FIELD - 1  # octets of a queue's name: a NUL ends it
LAYOUT = struct.Struct(f">I{FIELD}s{FIELD}sI")  # operation, sender_name, queue_id, message_size
HEAD_BYTES = LAYOUT.size  # octets; the message follows
ID = 16  # octets of a request id
MAX_SENDER = FIELD - 1 - ID - 1  # octets of a sending node's name: NUL, id and SETTLES follow it
NO_ID = bytes(ID)  # the id of a frame without one
MAX_RING_MESSAGE = MAX_USER_SENT - HEAD_BYTES  # octets of a message in the ring
SETTLES = b"\1"  # after the id (5.4)
RESENT = b"\2"  # there, in a request (5.3)


class Operation(enum.IntEnum):
    """The operation that a frame requests, or the kind of its answer (5.1)."""

    CREATE_QUEUE = 0  # make a queue
    PUSH = 1  # put a message
    PULL = 2  # take a message
    DESTROY_QUEUE = 3  # remove a queue
    ERROR = 4  # it was not done; the message says why, in UTF-8
    OK = 5  # it was done; the message is what was pulled


REPLIES = frozenset({Operation.ERROR, Operation.OK})  # operations that answer a request


@dataclass(frozen=True, slots=True)
class Frame:
    """A queue operation or a reply on its way around the ring (5.3)."""

    operation: Operation  # a request, or OK or ERROR
    sender: bytes  # the requesting node, which gets the reply: 1 to MAX_SENDER octets
    queue: bytes  # 1 to MAX_FIELD_NAME octets
    message: bytes = b""  # up to MAX_RING_MESSAGE octets
    request_id: bytes = NO_ID  # ID octets
    settles: bool = False  # an OK from the requesting node, whose client has the message (5.4)
    resent: bool = False  # a request sent on a second link, which may have been done (5.3)


def encode_frame(frame: Frame) -> bytes:
    """Encode a frame as a USER payload. Raises LocalError if it does not fit."""
    if frame.settles and not _may_settle(frame.operation, frame.message, frame.request_id):
        raise LocalError("a settlement is an empty OK with a request id")  # 5.4
    if frame.resent and not _may_be_resent(frame.operation, frame.request_id):
        raise LocalError("only a request with an id can be marked as sent again")  # 5.3
    if len(frame.request_id) != ID or len(frame.message) > MAX_RING_MESSAGE:
        raise LocalError(f"an id of {len(frame.request_id)} octets, a message of {len(frame.message)}")
    sender = encode_name(frame.sender, MAX_SENDER) + b"\0" + frame.request_id + _kind(frame)
    queue = encode_name(frame.queue, MAX_FIELD_NAME)
    return LAYOUT.pack(frame.operation, sender, queue, len(frame.message)) + frame.message


def parse_frame(payload: bytes) -> Frame | None:
    """Parse a USER payload; None if it is not a queue operation (5.3, 5.5)."""
    if len(payload) < HEAD_BYTES:
        return None
    code, sender_field, queue_field, size = LAYOUT.unpack_from(payload)
    if code not in _OPERATIONS or size != len(payload) - HEAD_BYTES:
        return None
    sender, _, rest = sender_field.partition(b"\0")
    queue = name_in(queue_field)
    if not 0 < len(sender) <= MAX_SENDER or not queue:
        return None
    operation, message, request_id = Operation(code), payload[HEAD_BYTES:], rest[:ID]
    kind = rest[ID : ID + 1]
    settles = kind == SETTLES and _may_settle(operation, message, request_id)
    resent = kind == RESENT and _may_be_resent(operation, request_id)
    return Frame(operation, sender, queue, message, request_id, settles, resent)


def resent(payload: bytes) -> bytes:
    """Mark a USER payload that goes on a second link, if it is a request with an id (5.3)."""
    frame = parse_frame(payload)
    if frame is None or not _may_be_resent(frame.operation, frame.request_id):
        return payload
    at = _KIND_AT + len(frame.sender)
    return payload[:at] + RESENT + payload[at + 1 :]


def name_in(field: bytes) -> bytes | None:
    """Return the name in a field: all before its first NUL, which may be nothing; None without a NUL (5.1)."""
    name, end, _ = field.partition(b"\0")
    return name if end else None


def encode_name(name: bytes, max_bytes: int) -> bytes:
    """Return the name. Raises LocalError if it is empty, too long, or holds a NUL, which would end it."""
    if not 0 < len(name) <= max_bytes or b"\0" in name:
        raise LocalError(f"a name has 1 to {max_bytes} octets and no NUL: {name[:40]!r}")
    return name


def _kind(frame: Frame) -> bytes:
    return SETTLES if frame.settles else RESENT if frame.resent else b"\0"


def _may_be_resent(operation: Operation, request_id: bytes) -> bool:
    return operation not in REPLIES and request_id != NO_ID


def _may_settle(operation: Operation, message: bytes, request_id: bytes) -> bool:
    return operation is Operation.OK and not message and request_id != NO_ID


_OPERATIONS = frozenset(Operation)
_KIND_AT = 4 + 1 + ID  # behind the operation, the sender's name, its NUL and the id
