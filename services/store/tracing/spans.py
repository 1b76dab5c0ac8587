"""Spans and the interface of their recorder.

An untraced process has no recorder, and its operations are not wrapped for tracing.
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
LONGEST_ERROR = 200  # characters
LOG = "log"  # destination of messages to the text service


class Kind(IntEnum):
    """The kind of a span, with the numbers of OpenTelemetry."""

    INTERNAL = 0
    CLIENT = 2  # a request to the store or another system
    PRODUCER = 3  # a message that is published
    CONSUMER = 4  # a message that is delivered


@dataclass(slots=True)
class Span:
    """An operation on one message. Times are ns since 1970 by this process's clock."""

    name: str
    kind: Kind
    context: Context
    parent: Context | None
    attributes: dict[str, Value]
    links: list[Context] = field(default_factory=list)
    start_ns: int = field(default_factory=time.time_ns)
    end_ns: int = 0
    error: str = ""  # error.type: the reason of a refusal

    def end(self, error: str = "", end_ns: int = 0) -> Span:
        """Set error and end (0: now), and return the span."""
        self.error, self.end_ns = error, end_ns or time.time_ns()
        return self


class Recorder(Protocol):
    """The receiver of spans. No method blocks or raises."""

    @property
    def ratio(self) -> float:
        """The fraction, 0 to 1, of messages without a context that begin a trace."""

    def admit(self) -> bool:
        """Return whether one more message may begin a trace now; if not, count it as left out."""

    def follow(self) -> bool:
        """Return whether one more message of an existing trace may be traced; if not, count it."""

    def left_out(self, number: int) -> None:
        """Count about so many messages that would have begun a trace during a pause of sampling."""

    def record(self, span: Span) -> None:
        """Record a span that has ended."""


@runtime_checkable
class Traced(Protocol):
    """An observer of the store whose process may be traced."""

    @property
    def recorder(self) -> Recorder | None:
        """The process's recorder, None if it is not traced."""


class Observer:
    """An observer of the store that counts nothing, for a process that may be traced."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder

    def __call__(self, _reason: str, _number: int) -> None:
        """Ignore a refusal or alarm."""


def start_span(
    doing: str,
    kind: Kind,
    queue: Queue,
    parent: Context | None,
    context: Context,
    more: Mapping[str, Value],
    operation: str = "",
) -> Span:
    """Return a span that starts now, with the attributes of a queue.

    doing: the operation's name; operation: its `messaging.operation.type`, '' if it is the same.
    """
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
    """Return the attribute with the client's address, if it has one."""
    return {"network.peer.address": client.address} if client.address else {}


def readable(text: str) -> str:
    """Return a name, which may be any octets, as UTF-8 for an attribute."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def error_attributes(error: str) -> dict[str, Value]:
    """Return the attribute with the client's text of a failure, if there is one."""
    return {"penstock.error": readable(error[:LONGEST_ERROR])} if error else {}
