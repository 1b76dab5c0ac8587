"""Share between the parts of a session: the wire, pending replies, and how far the connection has closed."""

from __future__ import annotations

from services.kit.session.answers import Answers, Slot
from services.kit.session.session import Wire


class Conversation:
    """One connection's state and pending replies. An edge adds what its protocol needs."""

    __slots__ = ("answers", "closing", "drained", "held", "held_bytes", "is_lost", "wire")

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.answers = Answers()
        self.closing = False  # no further request is handled; pending replies are still sent
        self.drained = False  # the process is draining: no new work
        self.is_lost = False  # the connection has ended
        self.held = False  # replies wait until a write that must not be interrupted has ended
        self.held_bytes = 0  # of replies that wait

    def expect(self) -> Slot:
        """Return the slot of the reply to the current request."""
        return self.answers.expect(self.wire.loop_time())

    def fill(self, slot: Slot, reply: bytes) -> None:
        """Set a reply; it is sent once all replies before it are known."""
        slot.reply = reply
        if self.held:
            self.held_bytes += len(reply)
            self.wire.reschedule()  # counted against the memory budget
        else:
            self.write_known()

    def write_known(self) -> None:
        """Send the replies before the first unknown one, unless replies are held."""
        if not self.held and (known := self.answers.take_known()):
            self.wire.write(known)

    def write_held(self) -> None:
        """End `held`: send the replies that waited."""
        self.held = False
        self.held_bytes = 0
        self.write_known()
        self.wire.reschedule()

    def close_unanswered(self, reason: str, detail: str) -> None:
        """Close without a reply: the outcome of a request is unknown, so any reply might be wrong."""
        self.wire.refuse(reason, detail)
        self.closing = True
        self.wire.close()
