"""Client requests, and how they are read: one event for a request or a run of like ones (ring.md 5.1, 5.2).

`echo` is what every reply repeats of its request: the fields sender_name and queue_id unchanged, 510 octets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from protos.ring.frames import ECHO, HEAD_BYTES, LAYOUT, Operation, name_in
from protos.ring.messages import Limits
from protos.runs import U32, count_run, read_records
from protos.types import PeerError


@dataclass(frozen=True, slots=True)
class Create:
    """create_queue; `queue` has 1 to MAX_FIELD_NAME octets, none of them NUL, here as in the others."""

    echo: bytes  # 510 octets
    queue: bytes  # 1 to MAX_FIELD_NAME octets without NUL


@dataclass(frozen=True, slots=True)
class Destroy:
    """destroy_queue."""

    echo: bytes  # 510 octets
    queue: bytes  # 1 to MAX_FIELD_NAME octets without NUL


@dataclass(frozen=True, slots=True)
class Push:
    """1 to MAX_RUN consecutive pushes of one sender to one queue.

    Each record is `u32 N, N octets`, exactly as sent: the end of an OK to a pull is the record itself.
    """

    echo: bytes  # 510 octets
    queue: bytes  # 1 to MAX_FIELD_NAME octets without NUL
    records: list[bytes]  # `u32 N, N octets` each, exactly as sent


@dataclass(frozen=True, slots=True)
class Pull:
    """`count` consecutive pulls of one sender from one queue, 1 to MAX_RUN; each gets a reply of its own."""

    echo: bytes  # 510 octets
    queue: bytes  # 1 to MAX_FIELD_NAME octets without NUL
    count: int  # 1 to MAX_RUN


@dataclass(frozen=True, slots=True)
class Refused:
    """A request to answer with ERROR (`encode_refusal`), and with `close` the last one of its connection.

    `reason` is a key of REFUSALS. Without `close` the request has been consumed whole; with it nothing after the
    request's head is ever parsed.
    """

    operation: Operation  # that was requested
    echo: bytes  # 510 octets
    reason: str  # a key of REFUSALS
    close: bool  # close the connection after the reply


ClientRequest = Create | Destroy | Push | Pull  # a request of a client
ClientEvent = ClientRequest | Refused  # what a `ClientConnection` yields

# reason of a `Refused`: the text of its ERROR (5.6)
REFUSALS = {
    "empty_queue_name": "queue name is empty",
    "endless_queue_name": "queue name has no end",
    "message_too_large": "message is too large",
}


class Found(NamedTuple):
    """An event, the position after what was read of it, and how many of its octets are to be skipped."""

    event: ClientEvent
    end: int
    unread: int = 0


def read_request(data: bytes, start: int, limits: Limits) -> Found | int:
    """Read the request, or run of requests, that begins at `start`.

    If it is incomplete, return the octets it needs at least. Only its head is read before its lengths are checked.
    Raises PeerError `unknown_operation`.
    """
    if len(data) - start < U32.size:
        return U32.size
    (code,) = U32.unpack_from(data, start)
    if code not in _ASKED:
        raise PeerError("unknown_operation", f"{code}")  # 5.2
    if len(data) - start < HEAD_BYTES:
        return HEAD_BYTES
    _, _, queue_field, size = LAYOUT.unpack_from(data, start)
    queue = name_in(queue_field)
    if size > limits.max_message_bytes or not queue:
        return _refuse(data, start, Operation(code), queue, size, limits)
    if code == Operation.PUSH:
        return _read_pushes(data, start, queue, size, limits)
    echo, end = data[start + U32.size : start + U32.size + ECHO], start + HEAD_BYTES
    match Operation(code):
        case Operation.PULL if not size:
            count = count_run(data, start, data[start:end])
            return Found(Pull(echo, queue, count), start + count * HEAD_BYTES)
        case Operation.PULL:
            return Found(Pull(echo, queue, 1), end, size)
        case Operation.CREATE_QUEUE:
            return Found(Create(echo, queue), end, size)
        case _:
            return Found(Destroy(echo, queue), end, size)


def _read_pushes(data: bytes, start: int, queue: bytes, size: int, limits: Limits) -> Found | int:
    """Read a run of pushes; what ends it (another request, a bad length, missing octets) is read next time."""
    head = data[start : start + U32.size + ECHO]
    records, end = read_records(data, start, head, limits.max_message_bytes)
    if not records:
        return HEAD_BYTES + size
    return Found(Push(head[U32.size :], queue, records), end)


def _refuse(
    data: bytes, start: int, operation: Operation, queue: bytes | None, size: int, limits: Limits
) -> Found:
    """Refuse a request: its message is skipped if it is small enough, else the connection closes (5.2)."""
    echo = data[start + U32.size : start + U32.size + ECHO]
    close = size > limits.max_discard_bytes
    if size > limits.max_message_bytes:
        reason = "message_too_large"
    else:
        reason = "endless_queue_name" if queue is None else "empty_queue_name"
    return Found(Refused(operation, echo, reason, close), start + HEAD_BYTES, 0 if close else size)


# Those of clients: 0 to 3.
_ASKED = frozenset({Operation.CREATE_QUEUE, Operation.PUSH, Operation.PULL, Operation.DESTROY_QUEUE})
