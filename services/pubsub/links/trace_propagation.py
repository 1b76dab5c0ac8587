"""Continue traces over links.

A message has the same name at all stores: store, incarnation and number (pubsub.md 4.1). The number alone decides
whether it is traced. Each link that it crosses has a span, whose id is derived from that name and the two stores, so
that both ends know it and no other link has it.
"""

from __future__ import annotations

from collections import deque

from protos import pubsub
from services.store import Queue
from services.store.log import CopyCallback
from services.store.model import Context, Hop, hop
from services.store.tracing import LOG, TracePropagation, Value

PROTOCOL = "text"
MOST_RECEIVED = 1000  # runs whose neighbours are remembered: as a rule they are sent on at once
Copies = list[tuple[int, Queue, bytes]]  # index of the line, queue, record
Name = tuple[bytes, bytes, int]  # store, incarnation, number


class LinkTraces:
    """The spans of all links of a process."""

    def __init__(self, hops: TracePropagation | None) -> None:
        """hops: None if nothing is traced."""
        self._hops = hops
        self._received: deque[tuple[Name, int, bytes]] = deque(maxlen=MOST_RECEIVED)  # first, last, neighbour

    def sent(
        self, store: bytes, incarnation: bytes, first: int, last: int, ours: bytes, neighbour: bytes
    ) -> None:
        """Record messages, of this store or another, that were sent to a neighbour."""
        if self._hops is None:
            return
        for number in self._hops.numbers(first, last):
            if not self._hops.admits():
                return
            name = (store, incarnation, number)
            origin = self._received_from(name)
            parent = None if origin is None else _over_link(name, origin, ours)
            more: dict[str, Value] = {
                "penstock.store": store.decode("utf-8", "replace"),
                "penstock.number": number,
                "penstock.neighbour": neighbour.decode("utf-8", "replace"),
            }
            self._hops.passed(LOG, _over_link(name, ours, neighbour), parent, more)

    def received(
        self, item: pubsub.Entries, copies: Copies, neighbour: bytes, ours: bytes
    ) -> tuple[Copies, dict[int, CopyCallback]]:
        """Put trace contexts into copies of a neighbour's messages. Return them, and callbacks by their indexes."""
        if self._hops is None:
            return copies, {}
        last = item.first + item.count - 1
        self._received.append(((item.store, item.incarnation, item.first), last, neighbour))
        traced = self._hops.numbers(item.first, last)
        made: Copies = []
        callbacks: dict[int, CopyCallback] = {}
        for place, (index, queue, record) in enumerate(copies):
            if item.first + index in traced and self._hops.admits():
                name = (item.store, item.incarnation, item.first + index)
                context = _hop_of(name).at(b"copy", ours, queue.qid.encode())
                copy = self._hops.copied(queue, record, _over_link(name, neighbour, ours), context)
                if copy is not None:
                    record, callbacks[place] = copy
            made.append((index, queue, record))
        return made, callbacks

    def _received_from(self, name: Name) -> bytes | None:
        """Return the neighbour that sent a message first, if it is known."""
        for first, last, neighbour in self._received:
            if first[:2] == name[:2] and first[2] <= name[2] <= last:
                return neighbour
        return None


def _hop_of(name: Name) -> Hop:
    store, incarnation, number = name
    return hop(PROTOCOL, store, incarnation, b"%d" % number)


def _over_link(name: Name, sender: bytes, receiver: bytes) -> Context:
    """Return the context of a link's span, which the sender records and the receiver continues."""
    return _hop_of(name).at(b"link", sender, receiver)
