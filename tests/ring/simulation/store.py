"""State that outlives a node: its store, with queues that all nodes of that store serve."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from protos.ring import Frame, Operation


@dataclass(slots=True)
class Outgoing:
    """A USER that waits for the successor, or for its answer."""

    payload: bytes
    is_mine: bool = False  # this node sent it first


@dataclass(slots=True)
class Disk:
    """The data that one node keeps in its store (ring.md 2.2, 4.5, 5.5)."""

    outgoing: deque[Outgoing] = field(default_factory=deque)
    inbox: Counter[bytes] = field(default_factory=Counter)
    accepted: list[bytes] = field(default_factory=list)  # from its application: USERs that must not be lost
    acknowledged: set[bytes] = field(default_factory=set)  # ids of requests answered by OK
    refused: set[bytes] = field(default_factory=set)  # ids of requests answered by ERROR
    alone: set[bytes] = field(default_factory=set)  # went around a ring of one: there was no other node
    lives: int = 0


class Store:
    """Queues, and results by request id (ring.md 5.4)."""

    def __init__(self, queues: set[bytes], keeps_ids: bool = True) -> None:
        self.queues = queues
        self.applied: Counter[bytes] = Counter()  # pushes by request id
        self._replies: dict[bytes, Frame] = {}
        self._keeps_ids = keeps_ids

    def carry_out(self, request: Frame) -> Frame:
        """Carry out the operation and store its reply under the request id, in one step."""
        known = self._replies.get(request.request_id)
        if known is not None and self._keeps_ids:
            return known
        if request.operation is Operation.PUSH:
            self.applied[request.request_id] += 1
        reply = Frame(Operation.OK, request.sender, request.queue, b"", request.request_id)
        self._replies[request.request_id] = reply
        return reply
