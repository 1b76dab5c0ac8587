"""One connection as the kit sees it: what comes in goes to its inflow, what it was given is settled or goes back."""

from __future__ import annotations

from typing import TypeVar

from services.kit.session import Ending, Inflow, InflowSession
from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService
from services.queueing.unsettled import Unsettled
from services.store import Delivery

EventT = TypeVar("EventT")
TalkT = TypeVar("TalkT", bound=QueueConversation)


class QueueSession(InflowSession[EventT, TalkT]):
    """The kit's `Session`. An edge's session adds what its requests mean (`Handler`)."""

    __slots__ = ("_ending", "_service", "_times", "_unsettled")

    def __init__(
        self,
        talk: TalkT,
        service: QueueService,
        inflow: Inflow[EventT],
        unsettled: Unsettled,
        eof_grace_s: float,
        request_timeout_s: float,
    ) -> None:
        """eof_grace_s, request_timeout_s: as of `Ending`."""
        super().__init__(talk, inflow)
        self._service = service
        self._unsettled = unsettled
        self._times = eof_grace_s, request_timeout_s
        self._ending: Ending | None = None

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
        talk = self._talk
        talk.gone = True
        self._inflow.lost()
        error = "" if talk.drained else "the connection was lost"
        self._service.give_back(leased, failed=not talk.drained, error=error)

    def end_if_done(self) -> None:
        talk = self._talk
        if talk.gone or not (talk.closing or talk.drained or self._inflow.eof_parsed):
            return
        if self._ending is None:
            self._ending = Ending(talk, self._inflow, self._unsettled, *self._times)
        self._ending.end_if_done()
