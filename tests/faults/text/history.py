"""Requests and deliveries of the clients of a ring. Times are seconds of one monotonic clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SHOWN = 24  # octets of a text shown in reports
Numbered = tuple[bytes, int]  # "<store> <incarnation>", number


@dataclass(slots=True, eq=False)
class Sent:
    """One SEND. Its `text` is unique and equals the message in the log."""

    text: bytes
    tag: bytes
    store: int
    connection: int
    began: float
    answered: float | None = None  # None: unknown whether it was stored
    ok: bool = False

    def __str__(self) -> str:
        return f"{self.text[:SHOWN]!r} ({self.tag.decode()}, at store {self.store})"

    @property
    def is_certain(self) -> bool:
        return self.answered is not None and self.ok

    @property
    def was_refused(self) -> bool:
        return self.answered is not None and not self.ok


@dataclass(slots=True, eq=False)
class Subscription:
    """One SUBSCRIBE."""

    identifier: bytes
    pattern: bytes
    asked: float
    confirmed: float | None = None

    def matches(self, tag: bytes) -> bool:
        if self.pattern.endswith(b"*"):
            return tag.startswith(self.pattern[:-1])
        return tag == self.pattern


@dataclass(slots=True, eq=False, repr=False)
class Life:
    """One connection of a subscriber from its first SUBSCRIBE; `ended` is None if it lasted to the end of the run."""

    subscriber: str
    store: int
    edge: str
    subscriptions: list[Subscription] = field(default_factory=list)
    lines: list[tuple[bytes, bytes]] = field(default_factory=list)  # identifier, text
    odd: list[bytes] = field(default_factory=list)  # unexpected lines
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a log."""

    origin: bytes
    number: int
    tag: bytes
    text: bytes

    def __str__(self) -> str:
        return f"{self.text[:SHOWN]!r} ({self.tag.decode()}, {self.origin.decode()} {self.number})"

    @property
    def store(self) -> bytes:
        return self.origin.partition(b" ")[0]


@dataclass(slots=True, repr=False)
class Book:
    """A store's log after the run, in order, and the numbers that the store reports as held."""

    store: bytes
    entries: list[Entry]
    held: set[Numbered]
    gaps: int = 0


class History:
    """All messages sent and received."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.sent: list[Sent] = []
        self.lives: list[Life] = []
        self._connections = 0

    def connection(self) -> int:
        self._connections += 1
        return self._connections
