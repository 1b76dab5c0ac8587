"""Requests of the clients of a fault run, with their outcomes as the clients saw them.

A request has one of three outcomes: it succeeded (`ok`), it failed, or it has no answer and its outcome is unknown.
Times are seconds of one monotonic clock; the store processed a request between `sent` and `answered`.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field

from protos.tmq import Operation


class Ended(enum.Enum):
    """The end of a connection, and the side that caused it."""

    OPEN = "open"  # not ended yet
    FIN = "fin"  # by the client, in order: everything was answered, then FIN, then the server's FIN
    HALF = "half"  # the same, but the server's FIN never came
    LEFT = "left"  # by the client: closed without waiting for anything
    RESET = "reset"  # by the client: RST
    BROKEN = "broken"  # by the server, or by the end of its process


@dataclass(slots=True, eq=False)
class Request:
    operation: Operation
    queue: str = ""
    body: bytes = b""  # sent by ENQ, received by DNQ
    sent: float = 0.0  # 0: not sent
    answered: float | None = None
    ok: bool = False  # succeeded; DNQ: returned a message; SELECT: returned a number

    @property
    def outcome(self) -> str:
        if self.answered is None:
            return "unknown" if self.sent else "not sent"
        return "ok" if self.ok else "failed"


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """Requests of one connection, in the order of sending."""

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
    """All connections of a run."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.connections: list[Connection] = []

    def connection(self, actor: str, edge: int) -> Connection:
        made = Connection(len(self.connections), actor, edge)
        self.connections.append(made)
        return made


@dataclass(slots=True)
class Fault:
    """One fault of a process."""

    target: str  # "store", "edge 0", "edge 1"
    kind: str
    began: float
    ended: float | None = None  # when the process ran again; None: not yet
    resumed: float | None = None  # when all edges served again; None: not yet


@dataclass(frozen=True, slots=True)
class Trouble:
    """A log event of an edge that is an error, or that explains what its clients saw."""

    edge: int
    at: float  # monotonic
    action: str
    text: str
