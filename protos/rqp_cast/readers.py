"""Parse the one message of a TCP connection, however its octets were cut (rqp_cast.md 1.2, 5.2).

There is no clock here: the attempt or session that waits for the message has the time limit.
"""

from dataclasses import dataclass
from typing import Generic

from protos.rqp_cast.codec import (
    MessageT,
    Parse,
    parse_accept_receiver,
    parse_accept_sender,
    parse_end_transmission,
)
from protos.rqp_cast.messages import AcceptReceiverMsg, AcceptSenderMsg, DataMsg, EndTransmissionMsg
from protos.rqp_cast.wire import (
    ACCEPT_RECEIVER,
    ACCEPT_SENDER,
    ADDRESS_BYTES,
    DATA_HEAD,
    END_TRANSMISSION,
    U32,
    Reason,
    parse_address,
)
from protos.types import PeerError


class MessageReader(Generic[MessageT]):
    """Parses a message of fixed size; later octets are counted in `excess` and otherwise ignored."""

    __slots__ = ("_held", "_is_over", "_omit_address", "_parse", "_size", "excess")

    def __init__(self, parse: Parse[MessageT], size: int, omit_address: bool) -> None:
        self._parse = parse
        self._omit_address = omit_address
        self._size = size if omit_address else size + ADDRESS_BYTES
        self._held = b""
        self._is_over = False
        self.excess = 0  # octets behind the message

    def receive(self, data: bytes) -> MessageT | None:
        """Return the message, once, when `data` completes it. Raises PeerError if it is invalid."""
        if self._is_over:
            self.excess += len(data)
            return None
        self._held += data
        if len(self._held) < self._size:
            return None
        self._is_over = True
        self.excess = len(self._held) - self._size
        whole, self._held = self._held[: self._size], b""
        return self._parse(whole, self._omit_address)

    def receive_eof(self) -> None:
        """Handle the peer's FIN. Raises PeerError `truncated` before the message is whole."""
        is_over, self._is_over, self._held = self._is_over, True, b""
        if not is_over:
            raise PeerError("truncated")


def accept_sender_reader(omit_address: bool = False) -> MessageReader[AcceptSenderMsg]:
    """Return the reader for findreceiver_port."""
    return MessageReader(parse_accept_sender, ACCEPT_SENDER.size, omit_address)


def accept_receiver_reader(omit_address: bool = False) -> MessageReader[AcceptReceiverMsg]:
    """Return the reader for accept_port."""
    return MessageReader(parse_accept_receiver, ACCEPT_RECEIVER.size, omit_address)


def end_transmission_reader(omit_address: bool = False) -> MessageReader[EndTransmissionMsg]:
    """Return the reader for endtransmission_port."""
    return MessageReader(parse_end_transmission, END_TRANSMISSION.size, omit_address)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A DATA_MSG that must not be inserted (5.2).

    `data` is what came of its data; empty for one too large. `detail` is a stable label: `other_key`,
    `message_too_large`, `truncated` or `timed_out`.
    """

    reason: Reason  # INJURED or PARTIALLY_RECEIVED
    data: bytes  # what came of its data
    detail: str  # `other_key`, `message_too_large`, `truncated` or `timed_out`


class DataReader:
    """Parses the one DATA_MSG of a session for `key` (5.2).

    Its size is checked before a body is kept. One with another key is read to its end: there may be no other copy.
    """

    __slots__ = (
        "_head_bytes",
        "_held",
        "_is_over",
        "_key",
        "_limit",
        "_needed",
        "_session",
        "excess",
    )

    def __init__(self, key: int, max_message_bytes: int, omit_address: bool = False) -> None:
        self._session = key
        self._limit = max_message_bytes
        self._head_bytes = DATA_HEAD.size if omit_address else ADDRESS_BYTES + DATA_HEAD.size
        self._needed = self._head_bytes  # of it, before there is something to do
        self._held = bytearray()
        self._key: int | None = None  # once the head has been read
        self._is_over = False
        self.excess = 0  # octets behind the message, or of a body too large

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished message: never more than a head and the largest acceptable body."""
        return len(self._held)

    def receive(self, data: bytes) -> DataMsg | Damaged | None:
        """Return the message, or what is wrong with it, once, when `data` decides that."""
        position, found = 0, None
        while not self._is_over and (position < len(data) or self._is_complete()):
            taken = data[position : position + self._needed - len(self._held)]
            self._held += taken  # grows in place: a large body comes in many small pieces
            position += len(taken)
            if self._is_complete():
                found = self._read_head() if self._key is None else self._finish()
        self.excess += len(data) - position
        return found

    def cut(self, detail: str) -> Damaged | None:
        """Return the damaged message at the end of the input; None if nothing had come, or all. detail: the reason."""
        if self._is_over or not self._held:
            self._is_over = True
            return None
        reason, found = Reason.PARTIALLY_RECEIVED, bytes(self._held[self._head_bytes :])
        if self._is_foreign():
            reason, detail = Reason.INJURED, "other_key"
        return self._over(Damaged(reason, found, detail))

    def _is_complete(self) -> bool:
        return len(self._held) == self._needed

    def _is_foreign(self) -> bool:
        return self._key is not None and self._key != self._session

    def _read_head(self) -> Damaged | None:
        key, size = DATA_HEAD.unpack_from(self._held, self._head_bytes - DATA_HEAD.size)
        self._key = key
        if size > self._limit:
            return self._over(Damaged(Reason.INJURED, b"", "message_too_large"))
        self._needed += int(size)
        return None

    def _finish(self) -> DataMsg | Damaged:
        if self._is_foreign():
            body = bytes(self._held[self._head_bytes :])
            return self._over(Damaged(Reason.INJURED, body, "other_key"))
        start = self._head_bytes - DATA_HEAD.size
        address = parse_address(bytes(self._held[:start])) if start else None
        record = bytes(memoryview(self._held)[self._head_bytes - U32.size :])
        return self._over(DataMsg(address, self._session, record))

    def _over(self, found: MessageT) -> MessageT:
        self._held = bytearray()
        self._is_over = True
        return found
