"""One connection as the kit sees it: what comes in goes to its inflow, what it was given is settled or goes back."""

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
        """eof_grace_s, request_timeout_s: as of `GracefulClose`."""
        super().__init__(conversation, inflow)
        self._service = service
        self._unsettled = unsettled
        self._times = eof_grace_s, request_timeout_s
        self._ending: GracefulClose | None = None

    @property
    def is_lingering(self) -> bool:
        """Whether it ends, and its last replies must still arrive."""
        return self._ending is not None and self._ending.deadline is not None

    def deadline(self) -> float | None:
        if self._ending is not None and (look := self._ending.deadline) is not None:
            return look
        return self._inflow.deadline()

    def on_time(self, now: float) -> None:
        if self._ending is not None and self._ending.deadline is not None:
            self._ending.on_time(now)
        else:
            self._inflow.on_time(now)

    def lost(self, reset: bool) -> None:
        self.give_up(self._unsettled.take_all())

    def give_up(self, leased: list[Delivery]) -> None:
        """The connection has gone: what was leased for it goes back, and counts as failed unless we ended it."""
        conversation = self._conversation
        conversation.is_lost = True
        self._inflow.lost()
        error = "" if conversation.drained else "the connection was lost"
        self._service.give_back(leased, failed=not conversation.drained, error=error)

    def end_if_done(self) -> None:
        conversation = self._conversation
        if conversation.is_lost or not (
            conversation.closing or conversation.drained or self._inflow.eof_parsed
        ):
            return
        if self._ending is None:
            self._ending = GracefulClose(conversation, self._inflow, self._unsettled, *self._times)
        self._ending.end_if_done()
