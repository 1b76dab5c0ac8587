"""Encode replies, and a client's own side: encode requests and parse replies (ring.md 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, assert_never

from protos.ring.frames import (
    ECHO,
    FIELD,
    LAYOUT,
    MAX_FIELD_NAME,
    REPLIES,
    Operation,
    encode_name,
    name_in,
)
from protos.ring.requests import REFUSALS, ClientRequest, Create, Destroy, Pull, Push, Refused
from protos.runs import U32, encode_record
from protos.types import LocalError

_OPERATION = {operation: U32.pack(operation) for operation in Operation}


def encode_reply(operation: Operation, echo: bytes, message: bytes = b"") -> bytes:
    """Encode OK or ERROR to a request with this `echo`. Raises LocalError for any other operation."""
    return _head(operation, echo) + encode_record(message)


def encode_replies(echo: bytes, count: int) -> bytes:
    """Encode OK to each of a run of pushes."""
    return encode_reply(Operation.OK, echo) * count


def encode_deliveries(echo: bytes, records: Iterable[bytes]) -> bytes:
    """Encode OK with a message to each of a run of pulls; each record is `u32 N, N octets`."""
    head = _head(Operation.OK, echo)
    return b"".join([head + record for record in records])


def encode_refusal(refused: Refused) -> bytes:
    """Encode the ERROR of a refused request."""
    return encode_reply(Operation.ERROR, refused.echo, REFUSALS[refused.reason].encode())


# --- a client's side


def echo_of(sender: bytes, queue: bytes) -> bytes:
    """Encode sender_name and queue_id, padded. Raises LocalError if a name is empty, too long, or holds a NUL."""
    fields = (encode_name(sender, MAX_FIELD_NAME), encode_name(queue, MAX_FIELD_NAME))
    return b"".join(field.ljust(FIELD, b"\0") for field in fields)


def encode_request(request: ClientRequest) -> bytes:
    """Encode a request; a run of n requests is n requests long."""
    match request:
        case Create(echo):
            return _OPERATION[Operation.CREATE_QUEUE] + echo + U32.pack(0)
        case Destroy(echo):
            return _OPERATION[Operation.DESTROY_QUEUE] + echo + U32.pack(0)
        case Pull(echo, _, count):
            return (_OPERATION[Operation.PULL] + echo + U32.pack(0)) * count
        case Push(echo, _, records):
            head = _OPERATION[Operation.PUSH] + echo
            return b"".join([head + record for record in records])
        case _:
            assert_never(request)


class ReplyHead(NamedTuple):
    """The first HEAD_BYTES octets of a reply; `size` octets of message follow."""

    operation: Operation  # OK or ERROR
    sender: bytes  # the sender_name of the request
    queue: bytes  # the queue_id of the request
    size: int  # octets of the message that follows


def parse_reply(head: bytes) -> ReplyHead:
    """Parse the head of a reply, HEAD_BYTES octets. Raises ValueError if it is not one."""
    code, sender, queue, size = LAYOUT.unpack(head)
    if code not in REPLIES:
        raise ValueError(f"not a reply: {code}")
    return ReplyHead(Operation(code), name_in(sender) or b"", name_in(queue) or b"", size)


def _head(operation: Operation, echo: bytes) -> bytes:
    if operation not in REPLIES or len(echo) != ECHO:
        raise LocalError(f"not a reply: {operation!r} to {len(echo)} octets")
    return _OPERATION[operation] + echo
