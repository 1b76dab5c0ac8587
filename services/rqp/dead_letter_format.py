"""Write and read dead letters as a file of consecutive GARBAGE_MSGs (rqp_cast.md 2.1)."""

from __future__ import annotations

from collections.abc import Iterator

from protos.rqp_cast import FileDamaged, GarbageMsg, GarbageReader, Reason, encode_garbage
from services.kit.dead_letter_formats import DamagedDeadLetters, DeadLetterFormat, ExportedDeadLetter

PROTOCOL_REASONS = {reason.label: reason for reason in Reason}
# Penstock's own reasons for which the message itself is at fault: no queue could have taken it.
FAULTY_MESSAGE = frozenset({"unencodable", "too_large_for_peers", "too_large_for_queue"})


def reason_of(reason: str) -> Reason:
    """Return the protocol's reason, or the nearest one: ZOMBIE is an intact message that no queue took."""
    if reason in PROTOCOL_REASONS:
        return PROTOCOL_REASONS[reason]
    return Reason.INJURED if reason in FAULTY_MESSAGE else Reason.ZOMBIE


def encode(letter: ExportedDeadLetter) -> bytes:
    """Encode one dead letter."""
    return encode_garbage(GarbageMsg(letter.body, reason_of(letter.reason)))


class GarbageLetters:
    """A `DeadLetterReader` of such a file."""

    def __init__(self, max_message_bytes: int, skip: int) -> None:
        self._reader = GarbageReader(max_message_bytes, skip)

    @property
    def skipped(self) -> int:
        """How many messages were skipped so far."""
        return self._reader.skipped

    def receive(self, data: bytes) -> Iterator[ExportedDeadLetter]:
        """Yield the letters that `data` completes. Raises DamagedDeadLetters."""
        try:
            for message in self._reader.receive(data):
                yield ExportedDeadLetter(message.data, message.reason.label)
        except FileDamaged as error:
            raise DamagedDeadLetters(str(error), can_be_skipped=error.reason == "unknown_reason") from None

    def receive_eof(self) -> None:
        """Raise DamagedDeadLetters if the file ends within a message."""
        try:
            self._reader.receive_eof()
        except FileDamaged as error:
            raise DamagedDeadLetters(str(error)) from None


DEAD_LETTER_FORMAT = DeadLetterFormat("garbage-msg", "GARBAGE_MSGs of RQP/cast", encode, GarbageLetters)
