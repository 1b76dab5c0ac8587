"""Define the interface of both kinds of transactions (tmq.md 5)."""

from __future__ import annotations

from typing import Protocol

from services.store import Delivery, Queue
from services.tmq.atomic_transactions import Transaction


class OpenTransaction(Protocol):
    """An open transaction, for DNQs."""

    @property
    def buffered(self) -> int:
        """Return the bytes of memory in use."""

    def admits(self, queue: Queue, operations: int) -> int:
        """Return how many of these further operations on the queue may be done."""

    def took(self, queue: Queue, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        """Keep the leases that fit. Return those, and those that must go back."""

    def count(self, queue: Queue, operations: int) -> None:
        """Record operations that were done."""

    def why_not(self, queue: Queue) -> str:
        """Return the reason of a refusal."""


class Transactions(Protocol):
    """TS, TE and TA of one connection, and other ends of a transaction."""

    @property
    def current(self) -> OpenTransaction | None:
        """Return the open transaction."""

    @property
    def buffering(self) -> Transaction | None:
        """Return the open transaction if it buffers ENQs; None if ENQs go to their queues at once."""

    @property
    def is_expired(self) -> bool:
        """Return True while every operation up to TE or TA fails (5.4)."""

    @property
    def deadline(self) -> float | None:
        """Return when `on_time` is due, in loop time; None for never."""

    def start(self) -> None:
        """Handle TS."""

    def end(self) -> None:
        """Handle TE."""

    def abort(self) -> None:
        """Handle TA."""

    def on_time(self, now: float) -> None:
        """Act on a deadline that has passed."""

    def drain(self) -> None:
        """Prepare for the end of the connection."""

    def lost(self) -> list[Delivery]:
        """End the transaction of a lost connection. Return the leases that must go back."""
