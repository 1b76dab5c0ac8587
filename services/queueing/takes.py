"""Answer runs of takes in parts: the next part waits until the client has read the last one (tmq.md 7.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from services.kit.session import Conversation, Inflow, Slot


class Run(Protocol):
    """Requests that are answered together."""

    slot: Slot


RunT = TypeVar("RunT", bound=Run)
EventT = TypeVar("EventT")


class Rest(Generic[RunT, EventT]):
    """The rest of the current run."""

    __slots__ = ("_conversation", "_inflow", "_run", "_take")

    def __init__(
        self, conversation: Conversation, inflow: Inflow[EventT], take: Callable[[RunT], None]
    ) -> None:
        """Call `take` to lease messages for the rest of a run."""
        self._conversation = conversation
        self._inflow = inflow
        self._take = take
        self._run: RunT | None = None

    def take(self, run: RunT) -> None:
        """Take for the rest of the run, now or once the client has read its replies."""
        if self._conversation.wire.is_blocked():
            self._run = run
            self._inflow.yield_to_output()
        else:
            self._take(run)

    def go_on(self) -> None:
        """Take for the waiting run: the client has read its replies."""
        if self._run is not None and not self._conversation.wire.is_blocked():
            run, self._run = self._run, None
            # do not count the time until the client has read
            run.slot.asked = self._conversation.wire.loop_time()
            self._take(run)
