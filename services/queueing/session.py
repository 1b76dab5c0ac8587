"""The session of one connection: pass its input to the inflow, and settle or return its messages at the end."""

from __future__ import annotations

from typing import TypeVar

from services.kit.session import GracefulClose, Inflow, InflowSession
from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService
from services.queueing.unsettled import Unsettled
from services.store import Delivery

EventT = TypeVar("EventT")
ConversationT = TypeVar("ConversationT", bound=QueueConversation)


class QueueSession(InflowSession[EventT, ConversationT]):
    """The kit's `Session`. An edge's session adds what its requests mean (`Handler`)."""

    __slots__ = ("_ending", "_service", "_times", "_unsettled")

    def __init__(
        self,
        conversation: ConversationT,
        service: QueueService,
        inflow: Inflow[EventT],
        unsettled: Unsettled,
        eof_grace_s: float,
        request_timeout_s: float,
    ) -> None:
        """Take `eof_grace_s` and `request_timeout_s` as `GracefulClose` does."""
        super().__init__(conversation, inflow)
        self._service = service
        self._unsettled = unsettled
        self._times = eof_grace_s, request_timeout_s
        self._ending: GracefulClose | None = None

    @property
    def is_lingering(self) -> bool:
        """True while the session is ending and its last replies are still being sent."""
        return self._ending is not None and self._ending.deadline is not None

    def deadline(self) -> float | None:
        """Return when `on_time` is to be called next, by the loop's clock; None: never."""
        if self._ending is not None and (deadline := self._ending.deadline) is not None:
            return deadline
        return self._inflow.deadline()

    def on_time(self, now: float) -> None:
        """Apply the time-outs of the ending, or else of the inflow."""
        if self._ending is not None and self._ending.deadline is not None:
            self._ending.on_time(now)
        else:
            self._inflow.on_time(now)

    def lost(self, reset: bool) -> None:
        """Return the unsettled messages of a lost connection."""
        self.give_up(self._unsettled.take_all())

    def give_up(self, leased: list[Delivery]) -> None:
        """Return the messages of a lost connection; count them as failed unless the process is draining."""
        conversation = self._conversation
        conversation.is_lost = True
        self._inflow.lost()
        error = "" if conversation.drained else "the connection was lost"
        self._service.give_back(leased, failed=not conversation.drained, error=error)

    def end_if_done(self) -> None:
        """Begin to end the session, or go on with that, once it is closing, draining or at its end of input."""
        conversation = self._conversation
        if conversation.is_lost or not (
            conversation.closing or conversation.drained or self._inflow.eof_parsed
        ):
            return
        if self._ending is None:
            self._ending = GracefulClose(conversation, self._inflow, self._unsettled, *self._times)
        self._ending.end_if_done()
