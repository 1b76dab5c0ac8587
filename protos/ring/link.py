"""What a node sends to its successor, and the octets that come back (ring.md 2), without I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import assert_never

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
    """The octets that parse to `message`. LocalError for what may not be sent, such as an `Unusable`."""
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


class Connection:
    """Parses what the predecessor sends; answers nothing, and knows nothing of rings.

    `now` is any clock in seconds that never runs backwards. Consume each iterator to its end (or drop the
    connection) before the next call. The messages do not depend on how the octets were cut. Once PeerError
    was raised, or the end of input seen, the connection is over: whatever still comes is ignored.

    PeerError reasons: `unknown_type`, `too_long` (2.5), `truncated`, `request_timeout` (2.7).
    """

    __slots__ = ("_held", "_is_over", "_needed", "_timeout_s", "_unfinished_since")

    def __init__(self, limits: Limits) -> None:
        self._timeout_s = limits.request_timeout_s
        self._held = bytearray()  # of an unfinished message
        self._needed = 0  # octets of it before it is worth reading again
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Octets held of an unfinished message: never more than the largest has."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[Message]:
        """What `data` completes, in order; then PeerError if what follows is no message (2.5)."""
        if self._is_over:
            return
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        yield from self._parse(data)
        if self._held and self._unfinished_since is None:
            self._unfinished_since = now

    def receive_eof(self, now: float) -> Iterator[Message]:
        """The predecessor's FIN; PeerError if it cuts a message short."""
        is_unfinished = bool(self._held)
        self._end()
        if is_unfinished:
            raise PeerError("truncated")
        yield from ()

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None while nothing is unfinished."""
        return None if self._unfinished_since is None else self._unfinished_since + self._timeout_s

    def on_time(self, now: float) -> Iterator[Message]:
        """PeerError for a message that has been unfinished for too long (2.7)."""
        due = self.deadline()
        if due is not None and now >= due:
            self._end()
            raise PeerError("request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Reading had been paused by us, so the silence was not the peer's: all waiting begins anew."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes) -> Iterator[Message]:
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
        """PeerError if no message can begin so: the type is judged as soon as it is there."""
        kind = data[position : position + TYPE_BYTES]
        if len(kind) == TYPE_BYTES and kind not in MAX_LENGTH:
            self._end()
            raise PeerError("unknown_type", repr(kind))
        if len(data) - position >= HEAD.size:
            self._end()
            raise PeerError("too_long", f"{kind.decode()} of {HEAD.unpack_from(data, position)[1]} octets")

    def _keep(self, data: bytes, position: int, needed: int) -> None:
        self._held += data[position:]
        self._needed = needed

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._unfinished_since = None
        self._is_over = True


class Acks:
    """Counts what the successor answers: an `A` for each message, and nothing else (2.2)."""

    __slots__ = ("_is_over",)

    def __init__(self) -> None:
        self._is_over = False

    def receive(self, data: bytes) -> Iterator[int]:
        """How many messages `data` acknowledges, if any; then PeerError `not_an_ack` for any other octet."""
        if self._is_over:
            return
        count = len(data) - len(data.lstrip(ACK))
        if count:
            yield count
        if count < len(data):
            self._is_over = True
            raise PeerError("not_an_ack", f"0x{data[count]:02x}")


def parse_loop(payload: bytes) -> Loop | Unusable:
    """A LOOP's payload: TTL, subtype, and of most a name that fills the rest (2.3)."""
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
