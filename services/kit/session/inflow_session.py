"""What every session does with its connection: input goes to its inflow, and it ends once all is answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from services.kit.session.conversation import Conversation
from services.kit.session.inflow import Inflow

EventT = TypeVar("EventT")
ConversationT = TypeVar("ConversationT", bound=Conversation)


class InflowSession(ABC, Generic[EventT, ConversationT]):
    """The kit's `Session` of a protocol whose requests come one after the other."""

    __slots__ = ("_conversation", "_inflow")

    def __init__(self, conversation: ConversationT, inflow: Inflow[EventT]) -> None:
        self._conversation = conversation
        self._inflow = inflow

    def received(self, data: bytes, now: float) -> None:
        self._inflow.received(data, now)

    @property
    def buffered(self) -> int:
        return self._inflow.buffered

    def resumed(self, now: float) -> None:
        self._inflow.restart_clock(now)
        self._inflow.proceed()

    def deadline(self) -> float | None:
        return self._inflow.deadline()

    def on_time(self, now: float) -> None:
        self._inflow.on_time(now)

    def eof(self, now: float) -> None:
        self._inflow.eof()

    def drain(self) -> None:
        """Answer what has come in, then close."""
        self._conversation.drained = True
        self.end_if_done()

    @abstractmethod
    def end_if_done(self) -> None:
        """Close the connection if nothing more is owed on it."""
