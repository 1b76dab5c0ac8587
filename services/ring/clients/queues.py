"""Whole queues: create_queue and destroy_queue (ring.md 5.2, 5.8)."""

from __future__ import annotations

from functools import partial

from protos.ring import Create, Destroy, Operation, encode_reply
from services.kit.session import Slot
from services.queueing import decode_name
from services.ring.asking import Unserved
from services.ring.clients.conversation import CREATE, DESTROY, RING_DESTROY, ClientConversation
from services.ring.clients.holding import ClientInflow
from services.ring.service import OWNER, RingService
from services.ring.words import CREATE_FORBIDDEN, NOT_OWNER, words_for
from services.store import StoreError
from services.store.model import OutcomeUnknown, QueueUnknown

FORBIDDEN = {  # why the edge itself says no
    CREATE: ("create_forbidden", CREATE_FORBIDDEN),
    DESTROY: ("not_owner", NOT_OWNER),
}


class Queues:
    """What one connection asks about whole queues."""

    __slots__ = ("_conversation", "_inflow")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow) -> None:
        self._conversation = conversation
        self._inflow = inflow

    def create(self, event: Create) -> None:
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = service.settings.clients.create.create(service.store, decode_name(event.queue), OWNER)
        service.background.run(work, partial(self._done, slot, event, CREATE))

    def destroy(self, event: Destroy) -> None:
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = _remove(service, decode_name(event.queue))
        service.background.run(work, partial(self._destroyed, slot, event))

    def _destroyed(self, slot: Slot, event: Destroy, result: bool | StoreError) -> None:
        asker = self._conversation.service.asker
        if isinstance(result, QueueUnknown) and asker is not None:
            asker.destroy(event.queue, partial(self._asked, slot, event))
        else:
            self._done(slot, event, DESTROY, result)

    def _asked(self, slot: Slot, event: Destroy, outcome: Unserved | None) -> None:
        if outcome is None:
            self._done(slot, event, RING_DESTROY, True)
        else:
            self._deny(slot, event, RING_DESTROY, "unserved", outcome.reason)

    def _done(self, slot: Slot, event: Create | Destroy, label: str, result: bool | StoreError) -> None:
        if isinstance(result, OutcomeUnknown):
            self._conversation.unknown(result)
        elif isinstance(result, StoreError):
            self._deny(slot, event, label, result.reason, words_for(result))
        elif not result:
            self._deny(slot, event, label, *FORBIDDEN[label])
        else:
            self._conversation.reply(slot, encode_reply(Operation.OK, event.echo), label, 1, 1)
            self._inflow.free()

    def _deny(self, slot: Slot, event: Create | Destroy, label: str, reason: str, words: str) -> None:
        self._conversation.wire.refuse(reason, label)
        self._conversation.deny(slot, event.echo, label, words)
        self._inflow.free()


async def _remove(service: RingService, name: str) -> bool:
    """True if it was removed now. Raises StoreError: unknown."""
    queue = await service.store.catalogue.find(name)
    if queue.owner != OWNER:
        return False
    await service.store.catalogue.delete(queue)
    return True
