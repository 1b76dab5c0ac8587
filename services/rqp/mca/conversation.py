"""The state that the parts of a receiving connection share: its peer, its holder name and the replies it owes."""

from __future__ import annotations

from protos.rqp_mca import ReceiverConnection
from services.kit.session import Conversation, Slot, Wire
from services.rqp.mca.receiver import Receiver
from services.store import Source, StoreError
from services.store.model import AccessDenied


class McaConversation(Conversation):
    """One connection's confirmations, in the order of what they confirm (rqp_mca.md 2.1)."""

    __slots__ = ("holder", "origin", "parser", "receiver", "source")

    def __init__(self, wire: Wire, receiver: Receiver) -> None:
        super().__init__(wire)
        self.receiver = receiver
        self.parser = ReceiverConnection(receiver.limits)
        self.holder = f"mca {receiver.service.name} {wire.conn} {wire.peer}"  # of assignments (2.3)
        self.origin = f"mca {wire.peer.certificate or wire.peer.address}"
        self.source = Source(receiver.service.store.client(wire.peer))

    def reply(self, slot: Slot, reply: bytes, operation: str, good: int, total: int) -> None:
        """Count the outcome of a run of `total` messages, `good` of them done, and send `reply`, which may be empty."""
        self.receiver.service.tally.count(operation, good, total, self.wire.loop_time() - slot.asked)
        self.fill(slot, reply)

    def reply_last(self, slot: Slot, reply: bytes, operation: str, good: int, total: int) -> None:
        """Reply, and close the connection once all earlier replies are sent; later replies are dropped."""
        self.answers.end_with(slot)
        self.closing = True
        self.reply(slot, reply, operation, good, total)

    def decline(self, slot: Slot, why: StoreError, operation: str) -> None:
        """Count a refusal, which the protocol answers with silence (1.3); log it if access was denied."""
        if isinstance(why, AccessDenied):
            self.wire.refuse(why.reason, str(why))
        else:
            self.receiver.service.metrics.count_refusal(why.reason)
        self.reply(slot, b"", operation, 0, 1)
