"""What the parts of a session share: whom it talks with, what it owes, how far its end has come."""

from __future__ import annotations

from protos import tmq
from protos.tmq import Dialect, Operation
from services.kit.session import Wire
from services.store import Source, StoreError
from services.tmq.answers import Answers, Slot
from services.tmq.service import TmqService


class Conversation:
    """One connection's replies, in the order of its requests (1.2). It knows none of the parts."""

    __slots__ = ("answers", "closing", "dialect", "drained", "gone", "origin", "service", "source", "wire")

    def __init__(self, wire: Wire, service: TmqService, dialect: Dialect) -> None:
        self.wire = wire
        self.service = service
        self.dialect = dialect
        self.origin = f"tmq {wire.peer.certificate or wire.peer.address}"
        self.source = Source()
        self.answers = Answers()
        self.closing = False  # no further request is handled; what is owed is still answered
        self.drained = False  # no new work is taken
        self.gone = False  # nobody is there any more

    def expect(self) -> Slot:
        """The place of the reply to the request at hand."""
        return self.answers.expect(self.wire.loop_time())

    def reply(self, slot: Slot, reply: bytes, operation: Operation, good: int, total: int) -> None:
        """The reply to a run of `total` requests, `good` of them done; sent once all before it are known."""
        slot.reply = reply
        self.service.count(operation._value_, good, total, self.wire.loop_time() - slot.asked)
        if known := self.answers.take_known():
            self.wire.write(known)

    def status(self, slot: Slot, operation: Operation, ok: bool) -> None:
        """Replies with the status octet of an operation (3)."""
        self.reply(slot, tmq.encode_status(self.dialect, operation, ok), operation, int(ok), 1)

    def answer(self, operation: Operation, ok: bool) -> None:
        """Answers the request at hand at once."""
        self.status(self.expect(), operation, ok)

    def refuse(self, event: tmq.Refused) -> None:
        """A request that the limits forbid: failed, and closed after it if it cannot be read past (2.1, 7.1)."""
        self.wire.refuse(event.reason, event.operation.value)
        self.reply(self.expect(), tmq.encode_failure(self.dialect, event.operation), event.operation, 0, 1)
        if event.close:
            self.closing = True

    def unknown(self, error: StoreError) -> None:
        """The outcome cannot be learnt: closed unanswered, for any answer might be a lie (7.2)."""
        self.wire.refuse(error.reason, str(error))
        self.closing = True
        self.wire.close()
