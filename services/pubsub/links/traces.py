"""Traces over links. A message has the same name everywhere, store, incarnation and number (pubsub.md 4.1), and by that
all stores know which ones are traced: no message is looked at alone.

Each link that it crosses has a span, whose id is made of that name and the two stores: both know these, and no other
link has them, however many neighbours a store has.
"""

from __future__ import annotations

from collections import deque

from protos import pubsub
from services.store import Queue
from services.store.log import CopyCallback
from services.store.model import Context, Hop, hop
from services.store.tracing import LOG, TracePropagation, Value

PROTOCOL = "text"
MOST_CAME = 1000  # runs of which it is remembered who brought them: they are sent on at once, as a rule
Copies = list[tuple[int, Queue, bytes]]  # index of the line, queue, record
Name = tuple[bytes, bytes, int]  # store, incarnation, number


class LinkTraces:
    """Of all links of a process."""

    def __init__(self, hops: TracePropagation | None) -> None:
        """None: nothing is traced."""
        self._hops = hops
        self._came: deque[tuple[Name, int, bytes]] = deque(maxlen=MOST_CAME)  # first, last, neighbour

    def sent(
        self, store: bytes, incarnation: bytes, first: int, last: int, ours: bytes, neighbour: bytes
    ) -> None:
        """These of a store, which may be ours, have been written to a neighbour."""
        if self._hops is None:
            return
        for number in self._hops.numbers(first, last):
            if not self._hops.admits():
                return
            name = (store, incarnation, number)
            brought_by = self._brought_by(name)
            parent = None if brought_by is None else _over_link(name, brought_by, ours)
            more: dict[str, Value] = {
                "penstock.store": store.decode("utf-8", "replace"),
                "penstock.number": number,
                "penstock.neighbour": neighbour.decode("utf-8", "replace"),
            }
            self._hops.passed(LOG, _over_link(name, ours, neighbour), parent, more)

    def came(
        self, item: pubsub.Entries, copies: Copies, neighbour: bytes, ours: bytes
    ) -> tuple[Copies, dict[int, CopyCallback]]:
        """The copies of what a neighbour sent us as they are put in; and, by their places, who is told of them."""
        if self._hops is None:
            return copies, {}
        last = item.first + item.count - 1
        self._came.append(((item.store, item.incarnation, item.first), last, neighbour))
        traced = self._hops.numbers(item.first, last)
        made: Copies = []
        told: dict[int, CopyCallback] = {}
        for place, (index, queue, record) in enumerate(copies):
            if item.first + index in traced and self._hops.admits():
                name = (item.store, item.incarnation, item.first + index)
                context = _hop_of(name).at(b"copy", ours, queue.qid.encode())
                copy = self._hops.copied(queue, record, _over_link(name, neighbour, ours), context)
                if copy is not None:
                    record, told[place] = copy
            made.append((index, queue, record))
        return made, told

    def _brought_by(self, name: Name) -> bytes | None:
        """The neighbour that brought it first, if that is known."""
        for first, last, neighbour in self._came:
            if first[:2] == name[:2] and first[2] <= name[2] <= last:
                return neighbour
        return None


def _hop_of(name: Name) -> Hop:
    store, incarnation, number = name
    return hop(PROTOCOL, store, incarnation, b"%d" % number)


def _over_link(name: Name, sender: bytes, receiver: bytes) -> Context:
    """Of the span that the sender tells, and what comes of it at the receiver goes on from."""
    return _hop_of(name).at(b"link", sender, receiver)
