"""Messages put and messages arrived. Times are seconds since 1970, by the stores' clocks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults.rqp.plan import WAYS, Way

HEAD = 26  # octets of a body that identify it; a damaged message may have no more


@dataclass(slots=True, eq=False)
class Put:
    """One message for a transmission queue."""

    body: bytes
    began: float
    ended: float | None = None  # None: unknown whether it was stored
    ok: bool = False

    @property
    def is_stored(self) -> bool:
        return self.ended is not None and self.ok

    @property
    def was_refused(self) -> bool:
        return self.ended is not None and not self.ok

    def __str__(self) -> str:
        return repr(self.body[:HEAD].decode())


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message of the destination queue; arrivals are in queue order."""

    body: bytes
    at: float  # when the destination store accepted it


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, at either end."""

    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Alone:
    """A period in which only stores were killed; messages put in it may be lost if edges counted them as lost."""

    began: float
    ended: float
    counted: Mapping[str, int]  # lost, by protocol


@dataclass(slots=True, repr=False)
class Book:
    """All messages of one way, with its puts in sequence."""

    way: Way
    puts: list[Put] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)

    def body(self, size: int) -> bytes:
        """Return a unique body for the next message."""
        head = f"{self.way} {len(self.puts):06d} ".encode()
        return head.ljust(HEAD, b".") + b"." * size


class History:
    def __init__(self) -> None:
        self.began = time.time()
        self.books = {way: Book(way) for way in WAYS}
