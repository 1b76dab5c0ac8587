"""Encode and parse messages between a node and its successor (ring.md 2), without I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import assert_never

from protos.connection_input import ConnectionInput
from protos.ring.messages import (
    ACK,
    MAX_LOOP,
    MAX_NAME,
    MAX_USER,
    BreakLinkForced,
    Leader,
    Limits,
    LinkBroken,
    Loop,
    Message,
    Unusable,
    User,
)
from protos.types import LocalError, PeerError

HEAD = struct.Struct(">4sH")  # type, payload length (2.1)
LOOP_HEAD = struct.Struct(">HB")  # TTL, subtype (2.3)
NAME = LOOP_HEAD.size + 1  # where the name begins, after its length
TYPE_BYTES = 4
USER = b"USER"
LOOP = b"LOOP"
LEADER, LINK_BROKEN, BREAK_LINK_FORCED = range(3)  # subtypes


def encode_message(message: Message) -> bytes:
    """Encode a message. Raises LocalError for what may not be sent, such as an `Unusable`."""
    match message:
        case User(payload):
            if len(payload) > MAX_USER:
                raise LocalError(f"a USER has at most {MAX_USER} octets, not {len(payload)}")
            return HEAD.pack(USER, len(payload)) + payload
        case Leader(name, ttl):
            return _encode_named(LEADER, name, ttl)
        case LinkBroken(name, ttl):
            return _encode_named(LINK_BROKEN, name, ttl)
        case BreakLinkForced(ttl):
            return _encode_loop(LOOP_HEAD.pack(ttl, BREAK_LINK_FORCED))
        case Unusable(reason):
            raise LocalError(f"never sent on: {reason}")  # 2.3
        case _:
            assert_never(message)


class Connection(ConnectionInput[Message]):
    """Parses what the predecessor sends; answers nothing, and knows nothing of rings.

    PeerError reasons: `unknown_type`, `too_long` (2.5), `truncated`, `request_timeout` (2.7).
    """

    __slots__ = ()

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.request_timeout_s)

    def _parse(self, data: bytes, now: float) -> Iterator[Message]:
        position, size = 0, len(data)
        while size - position >= HEAD.size:
            kind, length = HEAD.unpack_from(data, position)
            if kind not in (USER, LOOP) or length > MAX_LENGTH[kind]:
                break
            start = position + HEAD.size
            end = start + length
            if end > size:
                self._keep(data, position, end - position)
                return
            self._unfinished_since = None
            position = end
            payload = data[start:end]
            yield User(payload) if kind == USER else parse_loop(payload)
        self._judge(data, position)
        self._keep(data, position, TYPE_BYTES if size - position < TYPE_BYTES else HEAD.size)

    def _judge(self, data: bytes, position: int) -> None:
        """Raise PeerError if no message can begin so; the type is judged as soon as it is complete."""
        kind = data[position : position + TYPE_BYTES]
        if len(kind) == TYPE_BYTES and kind not in MAX_LENGTH:
            raise PeerError("unknown_type", repr(kind))
        if len(data) - position >= HEAD.size:
            raise PeerError("too_long", f"{kind.decode()} of {HEAD.unpack_from(data, position)[1]} octets")

    def _keep(self, data: bytes, position: int, needed: int) -> None:
        self._held += data[position:]
        self._needed = needed


class Acks:
    """Counts the successor's answers: an `A` for each message, and nothing else (2.2)."""

    __slots__ = ("_is_over",)

    def __init__(self) -> None:
        self._is_over = False

    def receive(self, data: bytes) -> Iterator[int]:
        """Yield how many messages `data` acknowledges, if any; raise PeerError `not_an_ack` for other octets."""
        if self._is_over:
            return
        count = len(data) - len(data.lstrip(ACK))
        if count:
            yield count
        if count < len(data):
            self._is_over = True
            raise PeerError("not_an_ack", f"0x{data[count]:02x}")


def parse_loop(payload: bytes) -> Loop | Unusable:
    """Parse a LOOP's payload: TTL, subtype, and for most a name that fills the rest (2.3)."""
    if len(payload) < LOOP_HEAD.size:
        return Unusable("loop_too_short")
    ttl, subtype = LOOP_HEAD.unpack_from(payload)
    if subtype == BREAK_LINK_FORCED:
        return BreakLinkForced(ttl) if len(payload) == LOOP_HEAD.size else Unusable("loop_too_long", ttl)
    named = NAMED.get(subtype)
    if named is None:
        return Unusable("unknown_subtype", ttl)
    name = payload[NAME:]
    if not name or len(name) != payload[LOOP_HEAD.size]:
        return Unusable("bad_name", ttl)
    return named(name, ttl)


MAX_LENGTH = {USER: MAX_USER, LOOP: MAX_LOOP}
NAMED: dict[int, Callable[[bytes, int], Loop]] = {LEADER: Leader, LINK_BROKEN: LinkBroken}


def _encode_named(subtype: int, name: bytes, ttl: int) -> bytes:
    if not 0 < len(name) <= MAX_NAME:
        raise LocalError(f"a name has 1 to {MAX_NAME} octets, not {len(name)}")
    return _encode_loop(LOOP_HEAD.pack(ttl, subtype) + bytes([len(name)]) + name)


def _encode_loop(payload: bytes) -> bytes:
    return HEAD.pack(LOOP, len(payload)) + payload
