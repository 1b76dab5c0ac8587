"""What the clients of a fault run asked, and what became of each request as they saw it.

A request has one of three outcomes: it was answered well (`ok`), answered badly, or not answered at all: then the
client cannot know. Times are those of one monotonic clock, in seconds; what the store did for a request happened
between `sent` and `answered`.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field

from protos.tmq import Operation


class Ended(enum.Enum):
    """How a connection ended, and who ended it."""

    OPEN = "open"  # it did not, yet
    FIN = "fin"  # by the client, in order: everything was answered, then FIN, then the server's FIN
    HALF = "half"  # the same, but the server's FIN never came
    LEFT = "left"  # by the client: closed without waiting for anything
    RESET = "reset"  # by the client: RST
    BROKEN = "broken"  # by the server's end, or by its process's


@dataclass(slots=True, eq=False)
class Request:
    operation: Operation
    queue: str = ""
    body: bytes = b""  # sent by ENQ, received by DNQ
    sent: float = 0.0  # 0: never
    answered: float | None = None
    ok: bool = False  # done; for DNQ: a message came; for SELECT: a number

    @property
    def outcome(self) -> str:
        if self.answered is None:
            return "unknown" if self.sent else "not sent"
        return "ok" if self.ok else "failed"


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """One connection's requests, in the order in which they were sent."""

    number: int
    actor: str
    edge: int
    requests: list[Request] = field(default_factory=list)
    ended: Ended = Ended.OPEN
    ended_at: float = 0.0

    def end(self, how: Ended) -> None:
        if self.ended is Ended.OPEN:
            self.ended, self.ended_at = how, time.monotonic()


class History:
    """Every connection of a run."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.connections: list[Connection] = []

    def connection(self, actor: str, edge: int) -> Connection:
        made = Connection(len(self.connections), actor, edge)
        self.connections.append(made)
        return made


@dataclass(slots=True)
class Fault:
    """Something that was done to a process."""

    target: str  # "store", "edge 0", "edge 1"
    kind: str
    began: float
    ended: float | None = None  # when the process was there again; None: not yet
    resumed: float | None = None  # when all edges served again


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an edge wrote in its log that it should not have, or that explains what its clients saw."""

    edge: int
    at: float  # monotonic
    action: str
    text: str
