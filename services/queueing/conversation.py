"""Send a connection's replies in the order of its requests, and count them."""

from __future__ import annotations

from services.kit.session import Conversation, Slot, Wire
from services.queueing.service import QueueService
from services.store import Source, StoreError
from services.store.model import QueueUnknown


class Settlement(Slot):
    """The place of a settlement among the replies: replies to later requests wait until it is done."""

    __slots__ = ()


class QueueConversation(Conversation):
    """One connection's replies. An edge adds the wording of refusals."""

    __slots__ = ("_tally", "origin", "source", "was_reset")

    def __init__(self, wire: Wire, service: QueueService, protocol: str) -> None:
        """Begin a conversation. protocol: its name in the origins of messages."""
        super().__init__(wire)
        self._tally = service.tally
        self.origin = f"{protocol} {wire.peer.certificate or wire.peer.address}"
        self.source = Source(service.store.client(wire.peer))
        self.was_reset = False  # a settlement failed; no more replies are sent

    def reply(self, slot: Slot, reply: bytes, label: str, good: int, total: int) -> None:
        """Add the replies to a run of `total` requests, `good` of them done; they are sent in order.

        label: of the requests in metrics.
        """
        self._tally.count(label, good, total, self.wire.loop_time() - slot.asked)
        if not good:
            self._pass_settlements(slot)
        self.fill(slot, reply)

    def expect_settlement(self) -> Settlement:
        """Return the place of a settlement, which `settled` ends."""
        settlement = Settlement(self.wire.loop_time())
        self.answers.append(settlement)
        return settlement

    def settled(self, settlement: Slot) -> None:
        """Send the replies that waited for this settlement."""
        self.fill(settlement, b"")

    def _pass_settlements(self, slot: Slot) -> None:
        """Let a failure pass earlier settlements, which may wait for a store that is away."""
        for earlier in self.answers:
            if earlier is slot:
                return
            if isinstance(earlier, Settlement):
                earlier.reply = b""

    def unknown(self, error: StoreError) -> None:
        """Close without a reply, as the outcome is unknown and any reply may be wrong (tmq.md 7.2, ring.md 5.8)."""
        self.close_unanswered(error.reason, str(error))

    def reset_if_lost(self, error: StoreError | None) -> None:
        """Reset the connection if a settlement failed.

        The client must not go on as if it alone had processed a message that will be redelivered (tmq.md 6.1).
        """
        if error is None or self.is_lost or self.was_reset or isinstance(error, QueueUnknown):
            return  # messages of a deleted queue are not redelivered
        self.wire.refuse(error.reason, str(error))
        self.closing = self.was_reset = True
        self.wire.abort()
