"""Answer MSG_QUEUE_AVAILABLE_REQUEST and MSG_QUEUE_REQUEST: with a confirmation or not at all (rqp_mca.md 2.2, 2.3)."""

from __future__ import annotations

from functools import partial

from protos.rqp_mca import (
    AvailableRequest,
    QueueRequest,
    Request,
    encode_available_confirm,
    encode_queue_confirm,
)
from services.kit.session import Inflow, Slot
from services.rqp.mca.assignments import Assignments
from services.rqp.mca.conversation import McaConversation
from services.store import Queue, StoreError
from services.store.model import QueueUnknown

AVAILABLE, REQUEST = "available_request", "queue_request"  # labels of the counters


class QueueRequests:
    """The requests of one connection. Each waits for earlier messages: the queue's state may depend on them."""

    __slots__ = ("_assignments", "_conversation", "_inflow")

    def __init__(
        self, conversation: McaConversation, inflow: Inflow[Request], assignments: Assignments
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._assignments = assignments

    def available(self, event: AvailableRequest) -> None:
        """Confirm the queue if it is available to this connection."""
        self._ask(event.queue_id, AVAILABLE)

    def request(self, event: QueueRequest) -> None:
        """Assign the queue to this connection and confirm it, if it is available."""
        self._ask(event.queue_id, REQUEST)

    def _ask(self, number: int, operation: str) -> None:
        conversation = self._conversation
        slot = conversation.expect()
        self._inflow.hold()
        work = self._work(number, operation)
        conversation.receiver.service.background.run(work, partial(self._answered, slot, number, operation))

    async def _work(self, number: int, operation: str) -> None:
        """Raise StoreError if the queue is not available. A cached queue may be deleted, and its number moved."""
        receiver = self._conversation.receiver
        known = receiver.known(number)
        if known is not None:
            try:
                await self._work_on(known, operation)
            except QueueUnknown:
                receiver.forget()
            else:
                return
        await self._work_on(await receiver.find(number), operation)

    async def _work_on(self, queue: Queue, operation: str) -> None:
        queue.admit(self._conversation.source.client)
        self._assignments.named(queue)
        if operation == REQUEST:
            await self._assignments.assign(queue)
        else:
            await self._conversation.receiver.service.domain(queue).claims.available(
                queue, self._conversation.holder
            )

    def _answered(self, slot: Slot, number: int, operation: str, outcome: StoreError | None) -> None:
        conversation = self._conversation
        profile = conversation.parser.profile
        assert profile is not None  # known since the first message
        if outcome is not None:
            conversation.decline(slot, outcome, operation)
        else:
            encode = encode_queue_confirm if operation == REQUEST else encode_available_confirm
            conversation.reply(slot, encode(profile, number), operation, 1, 1)
        self._inflow.free()
