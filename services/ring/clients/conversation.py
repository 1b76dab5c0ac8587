"""What the parts of a client's session share: whom it talks with, what it owes, how far its end has come."""

from __future__ import annotations

from protos.ring import Operation, Refused, encode_refusal, encode_reply
from services.kit.session import Conversation, Slot, Wire
from services.ring.service import RingService
from services.store import Source
from services.store.model import OutcomeUnknown

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


class ClientConversation(Conversation):
    """One connection's replies, in the order of its requests (5.2). It knows none of the parts."""

    __slots__ = ("origin", "service", "source")

    def __init__(self, wire: Wire, service: RingService) -> None:
        super().__init__(wire)
        self.service = service
        self.origin = f"ring {wire.peer.certificate or wire.peer.address}"
        self.source = Source(service.store.client(wire.peer))

    def reply(self, slot: Slot, reply: bytes, label: str, good: int, total: int) -> None:
        """The replies to a run of `total` requests, `good` of them OK; sent once all before them are known."""
        self.service.tally.count(label, good, total, self.wire.loop_time() - slot.asked)
        self.fill(slot, reply)

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

    def unknown(self, outcome: OutcomeUnknown) -> None:
        """The outcome cannot be learnt: closed unanswered, for any answer might be a lie (5.8)."""
        self.close_unanswered(outcome.reason, str(outcome))


def error(echo: bytes, words: str) -> bytes:
    return encode_reply(Operation.ERROR, echo, words.encode())
