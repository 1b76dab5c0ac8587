"""The interfaces between the links and the handling of USER messages (ring.md 2.2, 4.5).

The links pass on the predecessor's messages and write `A` once these are reported as safe; they send messages to the
successor and report the outcome. They do not interpret payloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class OutgoingMessage(Protocol):
    """One USER for the successor. Exactly one of the methods is called, once."""

    payload: bytes

    def acknowledged(self) -> None:
        """Report that the successor has answered `A`."""

    def returned(self) -> None:
        """Report that the link broke first: send it again, before all that was not taken yet.

        Of several messages the last is returned first.
        """


class UserSink(Protocol):
    """Takes the USERs of the predecessor."""

    def received(self, payload: bytes, safe: Callable[[], None]) -> None:
        """Handle a USER; called in order of arrival.

        `safe` is called once it is stored, never before this returns, and in the same order; never if the store refuses
        it: then the predecessor sends it again (4.7).
        """


class UserSource(Protocol):
    """Provides the USERs for the successor."""

    def take(self, room: int) -> list[OutgoingMessage]:
        """Return at most `room` messages that are to be sent next."""

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called whenever there may be messages after there were none."""
