"""Operations on whole queues: create_queue and destroy_queue (ring.md 5.2, 5.8)."""

from __future__ import annotations

from functools import partial

from protos.ring import Create, Destroy, Operation, encode_reply
from services.kit.session import Slot
from services.queueing import decode_name
from services.ring.clients.conversation import CREATE, DESTROY, RING_DESTROY, ClientConversation
from services.ring.clients.inflow import ClientInflow
from services.ring.error_texts import CREATE_FORBIDDEN, NOT_OWNER, error_text
from services.ring.remote_queues import NotDone
from services.ring.service import OWNER, RingService
from services.store import StoreError
from services.store.model import OutcomeUnknown, QueueUnknown

FORBIDDEN = {  # refusals of the edge itself: reason, text
    CREATE: ("create_forbidden", CREATE_FORBIDDEN),
    DESTROY: ("not_owner", NOT_OWNER),
}


class Queues:
    """The queue operations of one connection."""

    __slots__ = ("_conversation", "_inflow")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow) -> None:
        self._conversation = conversation
        self._inflow = inflow

    def create(self, event: Create) -> None:
        """Create a queue in the local store."""
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = service.settings.clients.create.create(service.store, decode_name(event.queue), OWNER)
        service.background.run(work, partial(self._done, slot, event, CREATE))

    def destroy(self, event: Destroy) -> None:
        """Destroy a queue of the local store, or of another node's."""
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = _remove(service, decode_name(event.queue))
        service.background.run(work, partial(self._destroyed, slot, event))

    def _destroyed(self, slot: Slot, event: Destroy, result: bool | StoreError) -> None:
        remote_queues = self._conversation.service.remote_queues
        if isinstance(result, QueueUnknown) and remote_queues is not None:
            remote_queues.destroy(event.queue, partial(self._asked, slot, event))
        else:
            self._done(slot, event, DESTROY, result)

    def _asked(self, slot: Slot, event: Destroy, outcome: NotDone | None) -> None:
        if outcome is None:
            self._done(slot, event, RING_DESTROY, True)
        else:
            self._deny(slot, event, RING_DESTROY, "unserved", outcome.reason)

    def _done(self, slot: Slot, event: Create | Destroy, label: str, result: bool | StoreError) -> None:
        if isinstance(result, OutcomeUnknown):
            self._conversation.unknown(result)
        elif isinstance(result, StoreError):
            self._deny(slot, event, label, result.reason, error_text(result))
        elif not result:
            self._deny(slot, event, label, *FORBIDDEN[label])
        else:
            self._conversation.reply(slot, encode_reply(Operation.OK, event.echo), label, 1, 1)
            self._inflow.free()

    def _deny(self, slot: Slot, event: Create | Destroy, label: str, reason: str, text: str) -> None:
        self._conversation.wire.refuse(reason, label)
        self._conversation.deny(slot, event.echo, label, text)
        self._inflow.free()


async def _remove(service: RingService, name: str) -> bool:
    """Delete a queue; return False if create_queue did not make it. Raises StoreError if it is unknown."""
    queue = await service.store.catalogue.find(name)
    if queue.owner != OWNER:
        return False
    await service.store.catalogue.delete(queue)
    return True
