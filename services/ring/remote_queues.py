"""The interface through which the client port uses queues of other nodes' stores (ring.md 5.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """A message that another node took from its queue for us.

    Call `settle` once the client has it. A message that is not settled returns to its queue after the queue's
    visibility timeout (5.4).
    """

    body: bytes
    settle: Callable[[], None]


@dataclass(frozen=True, slots=True)
class NotDone:
    """A request that was not carried out; `reason` is the text of the ERROR that the client gets."""

    reason: str


class RemoteQueues(Protocol):
    """Sends requests around the ring.

    Each method calls `done` exactly once, never before the method returns.
    """

    def push(self, queue: bytes, body: bytes, done: Callable[[NotDone | None], None]) -> None:
        """Push to the node that serves the queue; `done(None)` once that node has stored the message."""

    def pull(self, queue: bytes, done: Callable[[RemoteMessage | NotDone], None]) -> None:
        """Pull one message from the node that serves the queue. Do not settle it if the client is gone."""

    def destroy(self, queue: bytes, done: Callable[[NotDone | None], None]) -> None:
        """Destroy the queue on the node that serves it; `done(None)` once it is removed."""
