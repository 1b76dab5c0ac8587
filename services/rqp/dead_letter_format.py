"""Dead letters as GARBAGE_MSGs, behind one another in a file (rqp_cast.md 2.1)."""

from __future__ import annotations

from collections.abc import Iterator

from protos.rqp_cast import FileDamaged, GarbageMsg, GarbageReader, Reason, encode_garbage
from services.kit.dead_letter_formats import DamagedDeadLetters, DeadLetterFormat, ExportedDeadLetter

NAMED = {reason.label: reason for reason in Reason}
# Reasons that the document does not name, where the message itself is at fault: no queue could have taken it.
AT_FAULT = frozenset({"unencodable", "too_large_for_peers", "too_large_for_queue"})


def reason_of(reason: str) -> Reason:
    """The document's own reason, else the nearest: ZOMBIE is a whole message that no queue has taken."""
    if reason in NAMED:
        return NAMED[reason]
    return Reason.INJURED if reason in AT_FAULT else Reason.ZOMBIE


def encode(letter: ExportedDeadLetter) -> bytes:
    return encode_garbage(GarbageMsg(letter.body, reason_of(letter.reason)))


class GarbageLetters:
    """`LetterReader` of such a file."""

    def __init__(self, max_message_bytes: int, skip: int) -> None:
        self._reader = GarbageReader(max_message_bytes, skip)

    @property
    def skipped(self) -> int:
        return self._reader.skipped

    def receive(self, data: bytes) -> Iterator[ExportedDeadLetter]:
        try:
            for message in self._reader.receive(data):
                yield ExportedDeadLetter(message.data, message.reason.label)
        except FileDamaged as error:
            raise DamagedDeadLetters(str(error), can_be_skipped=error.reason == "unknown_reason") from None

    def receive_eof(self) -> None:
        try:
            self._reader.receive_eof()
        except FileDamaged as error:
            raise DamagedDeadLetters(str(error)) from None


DEAD_LETTER_FORMAT = DeadLetterFormat("garbage-msg", "GARBAGE_MSGs of RQP/cast", encode, GarbageLetters)
