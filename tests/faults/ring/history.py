"""Requests of clients, their answers, and the messages found at the end. Times are seconds since 1970."""

from __future__ import annotations

import enum
import time
from collections import Counter
from dataclasses import dataclass, field

HEAD = 32  # octets of a body that identify it


class Answer(enum.Enum):
    """An answer to a push."""

    OPEN = "open"  # the connection broke first, or the ring did not answer in time (ring.md 5.3)
    OK = "ok"
    NO = "no"  # not stored now or later (ring.md 5.8)


@dataclass(slots=True, eq=False)
class Push:
    body: bytes
    queue: str
    node: str
    goes_round: bool
    began: float
    ended: float | None = None
    answer: Answer = Answer.OPEN
    words: str = ""  # text of an ERROR

    def __str__(self) -> str:
        words = f" ({self.words})" if self.words else ""
        return f"{self.body[:HEAD].decode().rstrip('.')!r}, {self.answer.value}{words}"


@dataclass(slots=True, eq=False)
class Pull:
    """A message delivered to a client."""

    body: bytes
    queue: str
    node: str
    at: float


@dataclass(slots=True, repr=False)
class History:
    began: float = field(default_factory=time.time)
    pushes: list[Push] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    left: dict[str, Counter[bytes]] = field(default_factory=dict)  # by queue, messages left at the end
    dead: dict[str, Counter[bytes]] = field(default_factory=dict)  # by queue, dead letters at the end
    sent: list[bytes] = field(default_factory=list)  # put into the outbox after the faults
    inbox: Counter[bytes] = field(default_factory=Counter)

    def body(self, name: str, size: int) -> bytes:
        """Return a unique body for the next push of this name."""
        head = f"{name} {len(self.pushes):07d} ".encode()
        return head.ljust(HEAD, b".") + b"." * size
