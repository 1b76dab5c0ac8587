"""What the parts of a client's session share: whom it talks with, what it owes, how far its end has come."""

from __future__ import annotations

from protos.ring import Operation, Refused, encode_refusal, encode_reply
from services.kit.session import Slot, Wire
from services.queueing import QueueConversation
from services.ring.service import RingService

CREATE, PUSH, PULL, DESTROY = "create_queue", "push", "pull", "destroy_queue"  # in the counters
# Where the ring was asked: another node answers, or none for as long as a client waits. PenstockSlowRequests leaves
# them out.
RING_PUSH, RING_PULL, RING_DESTROY = "ring_push", "ring_pull", "ring_destroy_queue"
LABELS = {
    Operation.CREATE_QUEUE: CREATE,
    Operation.PUSH: PUSH,
    Operation.PULL: PULL,
    Operation.DESTROY_QUEUE: DESTROY,
}


class ClientConversation(QueueConversation):
    """One connection's replies, in the order of its requests (5.2)."""

    __slots__ = ("service",)

    def __init__(self, wire: Wire, service: RingService) -> None:
        super().__init__(wire, service, "ring")
        self.service = service

    def deny(self, slot: Slot, echo: bytes, label: str, words: str, total: int = 1) -> None:
        """ERROR to each of a run."""
        self.reply(slot, error(echo, words) * total, label, 0, total)

    def refuse(self, event: Refused) -> None:
        """A request that the limits forbid: ERROR, and closed after it if it cannot be read past (5.6)."""
        label = LABELS[event.operation]
        self.wire.refuse(event.reason, label)
        self.reply(self.expect(), encode_refusal(event), label, 0, 1)
        if event.close:
            self.closing = True


def error(echo: bytes, words: str) -> bytes:
    return encode_reply(Operation.ERROR, echo, words.encode())
