"""How a connection ends: all that is owed is answered first; after a FIN the last replies must arrive (tmq.md 6.1)."""

from __future__ import annotations

from typing import Protocol

from services.kit.session.conversation import Conversation
from services.kit.session.inflow import Inflow
from services.kit.session.parsing import EventT

MIN_LOOK_S = 0.1  # between two looks at what the peer's TCP has acknowledged


class Unsettled(Protocol):
    """What the peer was given and has not shown to have got."""

    def __bool__(self) -> bool: ...

    def settle(self) -> None:
        """It has shown so now."""


class Linger:
    """After a FIN: replies that wait for the peer's TCP to acknowledge them (6.1)."""

    __slots__ = ("moved", "unsent", "until")

    def __init__(self, until: float, now: float, unsent: int) -> None:
        self.until = until  # when to look next
        self.moved = now  # when some of them were last acknowledged
        self.unsent = unsent


class GracefulClose:
    """Made once there is a reason to end: a FIN, a drain, a violation, or a reply that cannot be given."""

    __slots__ = ("_conversation", "_grace_s", "_inflow", "_linger", "_patience_s", "_unsettled")

    def __init__(
        self,
        conversation: Conversation,
        inflow: Inflow[EventT],
        unsettled: Unsettled,
        grace_s: float,
        patience_s: float,
    ) -> None:
        """grace_s: a reset this soon after the FIN returns the last replies. patience_s: then unread ones must move."""
        self._conversation = conversation
        self._inflow = inflow
        self._unsettled = unsettled
        self._grace_s = grace_s
        self._patience_s = patience_s
        self._linger: Linger | None = None

    @property
    def deadline(self) -> float | None:
        """When to look again; None unless replies must still arrive."""
        return None if self._linger is None else self._linger.until

    def end_if_done(self) -> None:
        """Closes once everything owed has been answered."""
        conversation, inflow = self._conversation, self._inflow
        if inflow.pumping or self._linger is not None:
            return
        if conversation.answers or (not conversation.closing and inflow.is_waiting()):
            return
        settles = inflow.eof_parsed and not conversation.closing
        if inflow.violation is not None:
            violation, inflow.violation = inflow.violation, None
            conversation.wire.refuse(violation.reason, violation.detail)
            settles = inflow.eof_parsed  # a FIN is one, also where it cuts a request short (3.3)
        if settles and self._unsettled:
            self._begin_linger()
        else:
            conversation.wire.close()

    def _begin_linger(self) -> None:
        wire = self._conversation.wire
        now = wire.loop_time()
        self._linger = Linger(now + self._grace_s, now, wire.unsent())
        wire.reschedule()

    def on_time(self, now: float) -> None:
        """A FIN settles once all replies are acknowledged by the peer's TCP and no reset has followed (6.1)."""
        linger = self._linger
        if linger is None:
            return
        wire = self._conversation.wire
        unsent = 0 if wire.is_reset() else wire.unsent()
        if unsent < linger.unsent:
            linger.unsent, linger.moved = unsent, now
        if unsent and now - linger.moved >= self._patience_s:
            wire.refuse("replies_unread")  # nor does the kit watch what fits into its buffers
            wire.abort()
        elif unsent:
            linger.until = now + max(self._grace_s, MIN_LOOK_S)
        else:
            self._linger = None
            if not wire.is_reset():
                self._unsettled.settle()
            self._conversation.closing = True
            wire.close()
