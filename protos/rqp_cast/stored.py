"""Encode and parse stored messages: T_MSG in transmission queues, GARBAGE_MSG as dead letters (rqp_cast.md 2)."""

from collections.abc import Iterator

from protos.rqp_cast.codec import quality_of
from protos.rqp_cast.messages import GarbageMsg, TMsg
from protos.rqp_cast.wire import T_HEAD, U32, Reason, packed
from protos.types import PeerError


class FileDamaged(ValueError):
    """A file of GARBAGE_MSGs is damaged.

    `reason` is `message_too_large`, `unknown_reason` or `truncated`; `offset` is where the damaged GARBAGE_MSG begins,
    in bytes: all before it has been returned.
    """

    def __init__(self, reason: str, offset: int, detail: str) -> None:
        super().__init__(f"{reason} at byte {offset:,}: {detail}")
        self.reason = reason  # `message_too_large`, `unknown_reason` or `truncated`
        self.offset = offset  # where the damaged GARBAGE_MSG begins, bytes


def encode_t_msg(message: TMsg) -> bytes:
    """Encode T_MSG: 13 bytes and the data."""
    head = packed(T_HEAD, message.msg_type, message.id, message.key, len(message.data))
    return head + message.data


def parse_t_msg(body: bytes) -> TMsg:
    """Parse a T_MSG that is all of `body`. PeerError `truncated`, `trailing_octets`, `unknown_type`: damaged (4.3)."""
    if len(body) < T_HEAD.size:
        raise PeerError("truncated", f"{len(body)} bytes, and its head alone has {T_HEAD.size}")
    number, identifier, key, size = T_HEAD.unpack_from(body)
    data = body[T_HEAD.size :]
    if len(data) != size:
        reason = "truncated" if len(data) < size else "trailing_octets"
        raise PeerError(reason, f"message_size is {size}, and {len(data)} bytes follow")
    return TMsg(quality_of(number), identifier, key, data)


def encode_garbage(message: GarbageMsg) -> bytes:
    """Encode GARBAGE_MSG: 8 bytes and the data. A file is a sequence of them."""
    return packed(U32, len(message.data)) + message.data + packed(U32, message.reason)


class GarbageReader:
    """Parses a file of GARBAGE_MSGs, in pieces of any size.

    FileDamaged ends it. Behind an `unknown_reason` another reader can continue, which skips that GARBAGE_MSG as well;
    otherwise the format does not tell where the next one would begin.
    """

    __slots__ = ("_held", "_max_message_bytes", "_offset", "_skip", "skipped")

    def __init__(self, max_message_bytes: int, skip: int = 0) -> None:
        """Begin at the start of a file.

        Args:
            max_message_bytes: Larger ones are damage.
            skip: How many to skip, whatever their reasons.
        """
        self._max_message_bytes = max_message_bytes
        self._skip = skip
        self.skipped = 0  # of them, up to now
        self._held = bytearray()  # of an unfinished one
        self._offset = 0  # where it begins

    @property
    def offset(self) -> int:
        """Bytes of the file read, to the end of a GARBAGE_MSG."""
        return self._offset

    def receive(self, data: bytes) -> Iterator[GarbageMsg]:
        """Yield what `data` completes, in order; consume it to its end. Raises FileDamaged after the good ones."""
        self._held += data
        position = 0
        try:
            while (end := self._end_of(position)) is not None:
                message = self._message(position, end) if self.skipped == self._skip else None
                self._offset += end - position
                position = end
                if message is None:
                    self.skipped += 1
                else:
                    yield message
        finally:
            del self._held[:position]

    def receive_eof(self) -> None:
        """Handle the file's end. Raises FileDamaged inside a GARBAGE_MSG."""
        if self._held:
            raise FileDamaged("truncated", self._offset, f"the file ends {len(self._held)} bytes later")

    def _end_of(self, start: int) -> int | None:
        """Return where the GARBAGE_MSG at `start` ends; None while it is incomplete."""
        if len(self._held) - start < U32.size:
            return None
        (size,) = U32.unpack_from(self._held, start)
        if size > self._max_message_bytes:
            limit = f"{size:,} bytes, and {self._max_message_bytes:,} are allowed"
            raise FileDamaged("message_too_large", self._offset, limit)
        end = start + U32.size + int(size) + U32.size
        return end if end <= len(self._held) else None

    def _message(self, start: int, end: int) -> GarbageMsg:
        (number,) = U32.unpack_from(self._held, end - U32.size)
        try:
            reason = Reason(number)
        except ValueError:
            raise FileDamaged("unknown_reason", self._offset, f"reason {number}") from None
        return GarbageMsg(bytes(self._held[start + U32.size : end - U32.size]), reason)
