"""Base class of sessions: pass input to the inflow, and close once everything is answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from services.kit.session.conversation import Conversation
from services.kit.session.inflow import Inflow

EventT = TypeVar("EventT")
ConversationT = TypeVar("ConversationT", bound=Conversation)


class InflowSession(ABC, Generic[EventT, ConversationT]):
    """A `Session` of a protocol whose requests are handled in order."""

    __slots__ = ("_conversation", "_inflow")

    def __init__(self, conversation: ConversationT, inflow: Inflow[EventT]) -> None:
        self._conversation = conversation
        self._inflow = inflow

    def received(self, data: bytes, now: float) -> None:
        """Handle a chunk of input."""
        self._inflow.received(data, now)

    @property
    def buffered(self) -> int:
        """Return the bytes of input that are held."""
        return self._inflow.buffered

    def resumed(self, now: float) -> None:
        """Handle input again, after a pause of reading."""
        self._inflow.restart_clock(now)
        self._inflow.proceed()

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None for never."""
        return self._inflow.deadline()

    def on_time(self, now: float) -> None:
        """Handle a deadline that has passed."""
        self._inflow.on_time(now)

    def eof(self, now: float) -> None:
        """Handle the peer's FIN."""
        self._inflow.eof()

    def drain(self) -> None:
        """Answer the requests received so far, then close."""
        self._conversation.drained = True
        self.end_if_done()

    @abstractmethod
    def end_if_done(self) -> None:
        """Close the connection if everything is answered."""
