"""What clients asked, what they were told, and what was found in the end. Times are s since 1970."""

from __future__ import annotations

import enum
import time
from collections import Counter
from dataclasses import dataclass, field

HEAD = 32  # octets of a body that tell it from all others


class Told(enum.Enum):
    """What became of a push."""

    OPEN = "open"  # the connection broke first, or the ring did not answer in time (ring.md 5.3)
    OK = "ok"
    NO = "no"  # it was not done, and will not be (ring.md 5.8)


@dataclass(slots=True, eq=False)
class Push:
    body: bytes
    queue: str
    node: str
    goes_round: bool
    began: float
    ended: float | None = None
    told: Told = Told.OPEN
    words: str = ""  # of an ERROR

    def __str__(self) -> str:
        said = f" ({self.words})" if self.words else ""
        return f"{self.body[:HEAD].decode().rstrip('.')!r}, {self.told.value}{said}"


@dataclass(slots=True, eq=False)
class Pull:
    """A message that a client was given."""

    body: bytes
    queue: str
    node: str
    at: float


@dataclass(slots=True, repr=False)
class History:
    began: float = field(default_factory=time.time)
    pushes: list[Push] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    left: dict[str, Counter[bytes]] = field(default_factory=dict)  # by queue, what stood in it in the end
    dead: dict[str, Counter[bytes]] = field(default_factory=dict)  # and among its dead letters
    sent: list[bytes] = field(default_factory=list)  # put into the outbox when all was well again
    inbox: Counter[bytes] = field(default_factory=Counter)

    def body(self, name: str, size: int) -> bytes:
        """For the next push of this name: like no other."""
        head = f"{name} {len(self.pushes):07d} ".encode()
        return head.ljust(HEAD, b".") + b"." * size
