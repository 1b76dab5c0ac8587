"""Encode the replies of one TMQ connection."""

from __future__ import annotations

from protos import tmq
from protos.tmq import Dialect, Operation
from services.kit.session import Slot, Wire
from services.queueing import QueueConversation
from services.tmq.service import TmqService


class TmqConversation(QueueConversation):
    """One connection's state and replies, in the order of its requests (1.2)."""

    __slots__ = ("dialect", "service")

    def __init__(self, wire: Wire, service: TmqService, dialect: Dialect) -> None:
        super().__init__(wire, service, "tmq")
        self.service = service
        self.dialect = dialect

    def status(self, slot: Slot, operation: Operation, ok: bool) -> None:
        """Reply with the status octet of an operation (3)."""
        self.reply(slot, tmq.encode_status(self.dialect, operation, ok), operation._value_, int(ok), 1)

    def answer(self, operation: Operation, ok: bool) -> None:
        """Reply to the current request at once."""
        self.status(self.expect(), operation, ok)

    def refuse(self, event: tmq.Refused) -> None:
        """Fail a request that exceeds a limit; close the connection if the rest cannot be skipped (2.1, 7.1)."""
        label = event.operation.value
        self.wire.refuse(event.reason, label)
        self.reply(self.expect(), tmq.encode_failure(self.dialect, event.operation), label, 0, 1)
        if event.close:
            self.closing = True
