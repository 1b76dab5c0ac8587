"""One connection's replies, in the order of its requests, and what is counted of them."""

from __future__ import annotations

from services.kit.session import Conversation, Slot, Wire
from services.queueing.service import QueueService
from services.store import Source, StoreError
from services.store.model import QueueUnknown


class QueueConversation(Conversation):
    """Knows none of the session's parts. An edge adds how its refusals are worded."""

    __slots__ = ("_tally", "origin", "source", "was_reset")

    def __init__(self, wire: Wire, service: QueueService, protocol: str) -> None:
        """protocol: as origins of messages name it."""
        super().__init__(wire)
        self._tally = service.tally
        self.origin = f"{protocol} {wire.peer.certificate or wire.peer.address}"
        self.source = Source(service.store.client(wire.peer))
        self.was_reset = False  # a settling failed: nothing is answered any more

    def reply(self, slot: Slot, reply: bytes, label: str, good: int, total: int) -> None:
        """Give the replies to a run of `total` requests, `good` of them done; sent once all before it are known.

        label: of the requests in the counters.
        """
        self._tally.count(label, good, total, self.wire.loop_time() - slot.asked)
        self.fill(slot, reply)

    def unknown(self, error: StoreError) -> None:
        """Close unanswered: the outcome cannot be learnt, so any answer might be a lie (tmq.md 7.2, ring.md 5.8)."""
        self.close_unanswered(error.reason, str(error))

    def reset_if_lost(self, error: StoreError | None) -> None:
        """Reset the connection if a settling failed.

        A client must not go on as if a message had been its own that others are given too (tmq.md 6.1).
        """
        if error is None or self.is_lost or self.was_reset or isinstance(error, QueueUnknown):
            return  # with its queue a message is gone for everybody
        self.wire.refuse(error.reason, str(error))
        self.closing = self.was_reset = True
        self.wire.abort()
