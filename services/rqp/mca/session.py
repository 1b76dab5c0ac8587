"""One connection to a receiving MCA as the kit sees it: events go to the parts that handle them (rqp_mca.md 2)."""

from __future__ import annotations

from typing import assert_never

from protos.rqp_mca import AvailableRequest, Data, QueueRequest, Request
from services.kit.session import Inflow, InflowSession, Wire
from services.rqp.mca.assignments import Assignments
from services.rqp.mca.conversation import McaConversation
from services.rqp.mca.inserts import Inserts
from services.rqp.mca.questions import Questions
from services.rqp.mca.receiver import Receiver
from services.store import StoreError

RUN_PART = 32  # this many messages of a run are as much work as one alone


class McaSession(InflowSession[Request, McaConversation]):
    """The kit's `Session`, and the `Handler` of its own input. RECEIVER_IDLE_STATE is its only state."""

    __slots__ = ("_assignments", "_inserts", "_is_ending", "_questions")

    def __init__(self, receiver: Receiver, wire: Wire) -> None:
        conversation = McaConversation(wire, receiver)
        super().__init__(conversation, Inflow(conversation, conversation.parser, self))
        self._assignments = Assignments(receiver, wire, conversation.holder)
        self._inserts = Inserts(conversation, self._inflow, self._assignments)
        self._questions = Questions(conversation, self._inflow, self._assignments)
        self._is_ending = False

    # what the kit tells

    def lost(self, reset: bool) -> None:
        """Its assignments end with it (2.3)."""
        conversation = self._conversation
        conversation.is_lost = True
        self._inflow.lost()
        self._free()

    # what the input tells

    def handle(self, event: Request) -> None:
        match event:
            case Data():
                self._inserts.insert(event)
            case AvailableRequest():
                self._questions.available(event)
            case QueueRequest():
                self._questions.request(event)
            case _:
                assert_never(event)

    def work(self, event: Request) -> int:
        return 1 + len(event.records) // RUN_PART if isinstance(event, Data) else 1

    def is_exclusive(self, event: Request) -> bool:
        """MSG_DATAs alone may overlap: what a queue is may depend on those before."""
        return self._inserts.is_exclusive(event) if isinstance(event, Data) else True

    def end_if_done(self) -> None:
        """After a FIN whole messages are carried out and confirmed, then assignments freed, then it is closed (2.4)."""
        conversation, inflow = self._conversation, self._inflow
        if (
            conversation.is_lost
            or self._is_ending
            or not (conversation.closing or conversation.drained or inflow.eof_parsed)
        ):
            return
        if inflow.pumping or conversation.answers or (not conversation.closing and inflow.is_waiting()):
            return
        self._is_ending = conversation.closing = True
        if inflow.violation is not None:
            violation, inflow.violation = inflow.violation, None
            conversation.wire.refuse(violation.reason, violation.detail)
        self._free()

    def _free(self) -> None:
        """Frees the assignments, then closes. Without any it is closed at once."""
        assignments = self._assignments
        assignments.is_over = True
        if assignments:
            self._conversation.receiver.service.background.run(assignments.free(), self._freed)
        else:
            self._conversation.wire.close()

    def _freed(self, _: StoreError | None) -> None:
        self._conversation.wire.close()
