"""What the links of a node owe those who handle USER messages, and the other way round (ring.md 2.2, 4.5).

`links` move octets: what comes from the predecessor they hand over, and write `A` once they are told that it is safe;
to the successor they send what they are given, and say what became of it. What a payload means they do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Parcel(Protocol):
    """One USER for the successor. Exactly one of the methods is called, once."""

    payload: bytes

    def acknowledged(self) -> None:
        """The successor has answered `A`."""

    def returned(self) -> None:
        """The link broke before: it is to be sent again, before all that has not been taken yet.

        Of several the last is returned first.
        """


class Arrivals(Protocol):
    """Where USERs of the predecessor go."""

    def received(self, payload: bytes, safe: Callable[[], None]) -> None:
        """In the order in which they came. `safe` is called once it is, never before this has returned, and for
        each in that order; never at all if the store refuses it: the predecessor sends it again (4.7)."""


class Departures(Protocol):
    """Where USERs for the successor come from."""

    def take(self, room: int) -> list[Parcel]:
        """At most `room` that are to go next; none, while there are none."""

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Called whenever there may be something to take after there was nothing."""
