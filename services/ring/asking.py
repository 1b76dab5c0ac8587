"""What the client port asks of the ring: queues that are not in our store (ring.md 5.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Brought:
    """A message that another node took out of its queue for us. `settle`, called once, says that the client has it.

    Without that it goes back after the queue's visibility timeout (5.4).
    """

    body: bytes
    settle: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Unserved:
    """It was not done; `reason` goes to the client as the text of an ERROR."""

    reason: str


class Asker(Protocol):
    """Carries questions around the ring. `done` is called exactly once, never before the method has returned."""

    def push(self, queue: bytes, body: bytes, done: Callable[[Unserved | None], None]) -> None:
        """None: some node has put it into its queue."""

    def pull(self, queue: bytes, done: Callable[[Brought | Unserved], None]) -> None:
        """One message, of whatever node serves the queue. Who is gone when it comes does not settle it."""

    def destroy(self, queue: bytes, done: Callable[[Unserved | None], None]) -> None:
        """None: some node has removed it."""
