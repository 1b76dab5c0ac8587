"""The state that the parts of a client session share, and how its requests are refused."""

from __future__ import annotations

from protos.ring import Operation, Refused, encode_refusal, encode_reply
from services.kit.session import Slot, Wire
from services.queueing import QueueConversation
from services.ring.service import RingService

CREATE, PUSH, PULL, DESTROY = "create_queue", "push", "pull", "destroy_queue"  # metric labels
# Requests sent around the ring last as long as other nodes take; PenstockSlowRequests leaves them out.
RING_PUSH, RING_PULL, RING_DESTROY = "ring_push", "ring_pull", "ring_destroy_queue"
LABELS = {
    Operation.CREATE_QUEUE: CREATE,
    Operation.PUSH: PUSH,
    Operation.PULL: PULL,
    Operation.DESTROY_QUEUE: DESTROY,
}


class ClientConversation(QueueConversation):
    """The replies of one connection, in the order of its requests (5.2)."""

    __slots__ = ("service",)

    def __init__(self, wire: Wire, service: RingService) -> None:
        super().__init__(wire, service, "ring")
        self.service = service

    def deny(self, slot: Slot, echo: bytes, label: str, text: str, total: int = 1) -> None:
        """Reply ERROR to each request of a run of `total`."""
        self.reply(slot, error(echo, text) * total, label, 0, total)

    def refuse(self, event: Refused) -> None:
        """Reply ERROR to a request over the limits; close after it if the rest cannot be skipped (5.6)."""
        label = LABELS[event.operation]
        self.wire.refuse(event.reason, label)
        self.reply(self.expect(), encode_refusal(event), label, 0, 1)
        if event.close:
            self.closing = True


def error(echo: bytes, text: str) -> bytes:
    """Encode an ERROR reply."""
    return encode_reply(Operation.ERROR, echo, text.encode())
