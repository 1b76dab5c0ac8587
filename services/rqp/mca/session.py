"""A connection to the receiving MCA: dispatch its messages to the parts that handle them (rqp_mca.md 2)."""

from __future__ import annotations

from typing import assert_never

from protos.rqp_mca import AvailableRequest, Data, QueueRequest, Request
from services.kit.session import Inflow, InflowSession, Wire
from services.rqp.mca.assignments import Assignments
from services.rqp.mca.conversation import McaConversation
from services.rqp.mca.inserts import Inserts
from services.rqp.mca.queue_requests import QueueRequests
from services.rqp.mca.receiver import Receiver
from services.store import StoreError

RUN_PART = 32  # messages of a run that count as one unit of work


class McaSession(InflowSession[Request, McaConversation]):
    """The kit's `Session`, and the `Handler` of its own input. RECEIVER_IDLE_STATE is its only state."""

    __slots__ = ("_assignments", "_inserts", "_is_ending", "_requests")

    def __init__(self, receiver: Receiver, wire: Wire) -> None:
        conversation = McaConversation(wire, receiver)
        super().__init__(conversation, Inflow(conversation, conversation.parser, self))
        self._assignments = Assignments(receiver, wire, conversation.holder)
        self._inserts = Inserts(conversation, self._inflow, self._assignments)
        self._requests = QueueRequests(conversation, self._inflow, self._assignments)
        self._is_ending = False

    # callbacks from the kit

    def lost(self, reset: bool) -> None:
        """End the connection's assignments (2.3)."""
        conversation = self._conversation
        conversation.is_lost = True
        self._inflow.lost()
        self._free()

    # callbacks from the input

    def handle(self, event: Request) -> None:
        """Dispatch one request."""
        match event:
            case Data():
                self._inserts.insert(event)
            case AvailableRequest():
                self._requests.available(event)
            case QueueRequest():
                self._requests.request(event)
            case _:
                assert_never(event)

    def work(self, event: Request) -> int:
        """Return how much work a request is, in units of one message."""
        return 1 + len(event.records) // RUN_PART if isinstance(event, Data) else 1

    def is_exclusive(self, event: Request) -> bool:
        """Return whether a request must wait for those before it: only MSG_DATAs may overlap."""
        return self._inserts.is_exclusive(event) if isinstance(event, Data) else True

    def end_if_done(self) -> None:
        """After a FIN: once whole messages are confirmed, free the assignments, then close (2.4)."""
        conversation, inflow = self._conversation, self._inflow
        if conversation.is_lost or self._is_ending:
            return
        if not (conversation.closing or conversation.drained or inflow.eof_parsed):
            return
        if inflow.pumping or conversation.answers or (not conversation.closing and inflow.is_waiting()):
            return
        self._is_ending = conversation.closing = True
        if inflow.violation is not None:
            violation, inflow.violation = inflow.violation, None
            conversation.wire.refuse(violation.reason, violation.detail)
        self._free()

    def _free(self) -> None:
        """Free the assignments, then close."""
        assignments = self._assignments
        assignments.is_over = True
        if assignments:
            self._conversation.receiver.service.background.run(assignments.free(), self._freed)
        else:
            self._conversation.wire.close()

    def _freed(self, _: StoreError | None) -> None:
        self._conversation.wire.close()
