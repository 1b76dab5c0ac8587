"""MSG_QUEUE_AVAILABLE_REQUEST and MSG_QUEUE_REQUEST: asked of the store, answered with yes or not at all (2.2, 2.3)."""

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


class Questions:
    """One connection's. Each waits for what came before it: what the queue is may depend on that."""

    __slots__ = ("_assignments", "_conversation", "_inflow")

    def __init__(
        self, conversation: McaConversation, inflow: Inflow[Request], assignments: Assignments
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._assignments = assignments

    def available(self, event: AvailableRequest) -> None:
        self._ask(event.queue_id, AVAILABLE)

    def request(self, event: QueueRequest) -> None:
        self._ask(event.queue_id, REQUEST)

    def _ask(self, number: int, operation: str) -> None:
        conversation = self._conversation
        slot = conversation.expect()
        self._inflow.hold()
        work = self._work(number, operation)
        conversation.receiver.service.background.run(work, partial(self._answered, slot, number, operation))

    async def _work(self, number: int, operation: str) -> None:
        """Raises StoreError. A queue that is remembered may have gone: then the number may be another's by now."""
        receiver = self._conversation.receiver
        known = receiver.known(number)
        if known is not None:
            try:
                await self._look(known, operation)
            except QueueUnknown:
                receiver.forget()
            else:
                return
        await self._look(await receiver.find(number), operation)

    async def _look(self, queue: Queue, operation: str) -> None:
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
        assert profile is not None  # the question was spoken in one
        if outcome is not None:
            conversation.decline(slot, outcome, operation)
        else:
            encode = encode_queue_confirm if operation == REQUEST else encode_available_confirm
            conversation.reply(slot, encode(profile, number), operation, 1, 1)
        self._inflow.free()
