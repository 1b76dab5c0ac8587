"""Runs of takes that are answered in parts: the next part waits for the client to read the last one (tmq.md 7.3)."""

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
    """What is left of the run at hand."""

    __slots__ = ("_conversation", "_inflow", "_run", "_take")

    def __init__(
        self, conversation: Conversation, inflow: Inflow[EventT], take: Callable[[RunT], None]
    ) -> None:
        """take: asks for what the run may still be given."""
        self._conversation = conversation
        self._inflow = inflow
        self._take = take
        self._run: RunT | None = None

    def take(self, run: RunT) -> None:
        """Ask for the rest of the run, once the client has read what it was given."""
        if self._conversation.wire.is_blocked():
            self._run = run
            self._inflow.yield_to_output()
        else:
            self._take(run)

    def go_on(self) -> None:
        """The client has read."""
        if self._run is not None and not self._conversation.wire.is_blocked():
            run, self._run = self._run, None
            run.slot.asked = self._conversation.wire.loop_time()  # until now it waited for its client
            self._take(run)
