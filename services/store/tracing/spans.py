"""What the store tells of traced messages, and to whom: nothing here knows who collects it, or by which protocol.

A process that is not traced has no recorder, and its pipes have no `Traced` before their verbs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, runtime_checkable

from services.store.model.client import Client
from services.store.model.queues import Queue
from services.store.model.trace_context import Context

Value = str | int | float | bool
SYSTEM = "penstock"  # messaging.system
LONGEST_ERROR = 200  # characters of it
LOG = "log"  # the destination of what the text service is sent


class Kind(IntEnum):
    """As OpenTelemetry numbers them."""

    INTERNAL = 0
    CLIENT = 2  # asked something of the store, or of another system
    PRODUCER = 3  # a message that somebody gets later
    CONSUMER = 4  # a message that somebody was given


@dataclass(slots=True)
class Span:
    """Something that was done with one message. Times are ns since 1970 of this process's clock."""

    name: str
    kind: Kind
    context: Context
    parent: Context | None
    attributes: dict[str, Value]
    links: list[Context] = field(default_factory=list)
    start_ns: int = field(default_factory=time.time_ns)
    end_ns: int = 0
    error: str = ""  # error.type: the reason of a refusal

    def ended(self, error: str = "", end_ns: int = 0) -> Span:
        self.error, self.end_ns = error, end_ns or time.time_ns()
        return self


class Recorder(Protocol):
    """Where spans go. No method waits, and none raises."""

    @property
    def ratio(self) -> float:
        """0 to 1: how many of the messages that come without a context begin a trace."""

    def admit(self) -> bool:
        """Whether one more message may begin a trace now; if not, it is counted as left out."""

    def follow(self) -> bool:
        """Whether one more message that is in a trace may be traced on; if not, it is counted."""

    def left_out(self, number: int) -> None:
        """So many more, about, that would have begun one, were not even asked for."""

    def record(self, span: Span) -> None:
        """An ended one."""


@runtime_checkable
class Traced(Protocol):
    """An observer of the store whose process may be traced."""

    @property
    def recorder(self) -> Recorder | None:
        """None: it is not."""


class Observer:
    """Counts nothing, but the process may be traced."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder

    def __call__(self, _reason: str, _number: int) -> None:
        return None


def begun(
    doing: str,
    kind: Kind,
    queue: Queue,
    parent: Context | None,
    context: Context,
    more: Mapping[str, Value],
    operation: str = "",
) -> Span:
    """doing: the first word of its name, as of `messaging.operation.name`; operation: its type, where they differ."""
    name = readable(queue.name)
    attributes: dict[str, Value] = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": name,
        "messaging.operation.name": doing,
        "messaging.operation.type": operation or doing,
        "penstock.domain": queue.domain,
        **more,
    }
    return Span(f"{doing} {name}", kind, context, parent, attributes)


def peer_of(client: Client) -> dict[str, Value]:
    return {"network.peer.address": client.address} if client.address else {}


def readable(text: str) -> str:
    """Names may be any octets, attributes are UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def error_attributes(error: str) -> dict[str, Value]:
    """What a client, or whoever settles for him, says of a failure."""
    return {"penstock.error": readable(error[:LONGEST_ERROR])} if error else {}
