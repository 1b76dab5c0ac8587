"""What the parts of a session share, whatever the protocol: the wire, what is owed, how far the end has come."""

from __future__ import annotations

from services.kit.session.answers import Answers, Slot
from services.kit.session.session import Wire


class Conversation:
    """One connection's replies, in the order of its requests. An edge adds what its own protocol needs."""

    __slots__ = ("answers", "closing", "drained", "held", "held_bytes", "is_lost", "wire")

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.answers = Answers()
        self.closing = False  # no further request is handled; what is owed is still answered
        self.drained = False  # no new work is taken
        self.is_lost = False  # nobody is there any more
        self.held = False  # replies wait: something else is being written that must not be cut
        self.held_bytes = 0  # of them

    def expect(self) -> Slot:
        """The place of the reply to the request at hand."""
        return self.answers.expect(self.wire.loop_time())

    def fill(self, slot: Slot, reply: bytes) -> None:
        """The reply is known now; it is sent once all before it are."""
        slot.reply = reply
        if self.held:
            self.held_bytes += len(reply)
            self.wire.reschedule()  # it counts as what the peer has us hold
        else:
            self.write_known()

    def write_known(self) -> None:
        """What may be sent by now of replies that were put into their slots."""
        if not self.held and (known := self.answers.take_known()):
            self.wire.write(known)

    def write_held(self) -> None:
        """What `held` was set for is over."""
        self.held = False
        self.held_bytes = 0
        self.write_known()
        self.wire.reschedule()

    def close_unanswered(self, reason: str, detail: str) -> None:
        """What became of a request cannot be learnt: any answer might be a lie, so none is given."""
        self.wire.refuse(reason, detail)
        self.closing = True
        self.wire.close()
