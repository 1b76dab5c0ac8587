"""Close a connection once all requests are answered and, after a FIN, the last replies have arrived (tmq.md 6.1)."""

from __future__ import annotations

from typing import Protocol

from services.kit.session.conversation import Conversation
from services.kit.session.inflow import Inflow
from services.kit.session.parsing import EventT

MIN_CHECK_S = 0.1  # between two checks of what the peer's TCP has acknowledged


class Unsettled(Protocol):
    """Messages that were delivered to the peer and not settled yet."""

    def __bool__(self) -> bool: ...

    def settle(self) -> None:
        """Settle them: the peer has received them."""


class Linger:
    """Replies after a FIN that the peer's TCP has not acknowledged (6.1)."""

    __slots__ = ("moved", "unsent", "until")

    def __init__(self, until: float, now: float, unsent: int) -> None:
        self.until = until  # time of the next check
        self.moved = now  # time of the last progress
        self.unsent = unsent


class GracefulClose:
    """The end of a connection, after a FIN, a drain, a violation, or a reply that cannot be given."""

    __slots__ = ("_conversation", "_grace_s", "_inflow", "_linger", "_patience_s", "_unsettled")

    def __init__(
        self,
        conversation: Conversation,
        inflow: Inflow[EventT],
        unsettled: Unsettled,
        grace_s: float,
        patience_s: float,
    ) -> None:
        """Settle after `grace_s` without a reset; give up after `patience_s` without progress of unread replies."""
        self._conversation = conversation
        self._inflow = inflow
        self._unsettled = unsettled
        self._grace_s = grace_s
        self._patience_s = patience_s
        self._linger: Linger | None = None

    @property
    def deadline(self) -> float | None:
        """Return the time of the next check; None unless replies must still arrive."""
        return None if self._linger is None else self._linger.until

    def end_if_done(self) -> None:
        """Close if all requests have been answered."""
        conversation, inflow = self._conversation, self._inflow
        if inflow.pumping or self._linger is not None:
            return
        if conversation.answers or (not conversation.closing and inflow.is_waiting()):
            return
        settles = inflow.eof_parsed and not conversation.closing
        if inflow.violation is not None:
            violation, inflow.violation = inflow.violation, None
            conversation.wire.refuse(violation.reason, violation.detail)
            settles = inflow.eof_parsed  # also for a FIN inside a request (3.3)
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
        """Settle and close once the peer's TCP has acknowledged all replies and no reset has followed (6.1)."""
        linger = self._linger
        if linger is None:
            return
        wire = self._conversation.wire
        unsent = 0 if wire.is_reset() else wire.unsent()
        if unsent < linger.unsent:
            linger.unsent, linger.moved = unsent, now
        if unsent and now - linger.moved >= self._patience_s:
            wire.refuse("replies_unread")  # the kit does not watch output that fits into its buffers
            wire.abort()
        elif unsent:
            linger.until = now + max(self._grace_s, MIN_CHECK_S)
        else:
            self._linger = None
            if not wire.is_reset():
                self._unsettled.settle()
            self._conversation.closing = True
            wire.close()
