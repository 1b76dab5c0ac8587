"""What the parts of a session share: whom it talks with, what it owes, how far its end has come."""

from __future__ import annotations

from protos import tmq
from protos.tmq import Dialect, Operation
from services.kit.session import Conversation, Slot, Wire
from services.store import Source, StoreError
from services.tmq.service import TmqService


class TmqConversation(Conversation):
    """One connection's replies, in the order of its requests (1.2). It knows none of the parts."""

    __slots__ = ("dialect", "origin", "service", "source", "was_reset")

    def __init__(self, wire: Wire, service: TmqService, dialect: Dialect) -> None:
        super().__init__(wire)
        self.service = service
        self.dialect = dialect
        self.origin = f"tmq {wire.peer.certificate or wire.peer.address}"
        self.source = Source(service.store.client(wire.peer))
        self.was_reset = False  # a settling failed: nothing is answered any more

    def reply(self, slot: Slot, reply: bytes, operation: Operation, good: int, total: int) -> None:
        """The reply to a run of `total` requests, `good` of them done; sent once all before it are known."""
        self.service.tally.count(operation._value_, good, total, self.wire.loop_time() - slot.asked)
        self.fill(slot, reply)

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
        self.close_unanswered(error.reason, str(error))
