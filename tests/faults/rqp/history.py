"""What was put in and what arrived. Times are s since 1970, as the stores' clocks have them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults.rqp.plan import WAYS, Way

HEAD = 26  # octets of a body that tell it from all others; a damaged message may have no more of it


@dataclass(slots=True, eq=False)
class Put:
    """One message for a transmission queue."""

    body: bytes
    began: float
    ended: float | None = None  # None: nobody knows whether it was stored
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
    """One message of the queue at the other end, in its order."""

    body: bytes
    at: float  # when that store took it


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, at either end."""

    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Alone:
    """When nothing was hit but stores: messages that were put in then may be lost, if edges have counted it."""

    began: float
    ended: float
    counted: Mapping[str, int]  # lost, by protocol


@dataclass(slots=True, repr=False)
class Book:
    """All of one way: puts in the order in which they began, one after the other."""

    way: Way
    puts: list[Put] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)

    def body(self, size: int) -> bytes:
        """For the next message: like no other."""
        head = f"{self.way} {len(self.puts):06d} ".encode()
        return head.ljust(HEAD, b".") + b"." * size


class History:
    def __init__(self) -> None:
        self.began = time.time()
        self.books = {way: Book(way) for way in WAYS}
