"""Traces over links. A message has the same name everywhere, store, incarnation and number (pubsub.md 4.1), and by that
all stores know which ones are traced: no message is looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable

from protos import pubsub
from services.store import Queue
from services.store.hops import Hops
from services.store.spans import LOG, Value
from services.store.trace_context import Hop, hop

PROTOCOL = "text"
Copies = list[tuple[int, Queue, bytes]]  # index of the line, queue, record


class LinkTraces:
    def __init__(self, hops: Hops | None) -> None:
        """None: nothing is traced."""
        self._hops = hops

    def sent(
        self, store: bytes, incarnation: bytes, first: int, last: int, ours: bytes, neighbour: bytes
    ) -> None:
        """These of a store, which may be ours, have been written to a neighbour."""
        if self._hops is None:
            return
        for number in self._hops.numbers(first, last):
            if not self._hops.admits():
                return
            more: dict[str, Value] = {
                "penstock.store": store.decode("utf-8", "replace"),
                "penstock.number": number,
                "penstock.neighbour": neighbour.decode("utf-8", "replace"),
            }
            self._hops.passed(LOG, _hop_of(store, incarnation, number), more, is_ours=store == ours)

    def copies(self, item: pubsub.Entries, copies: Copies, stored: list[Callable[[], None]]) -> Copies:
        """The copies of what came as they are to be put in; `stored` gets what is to be called then."""
        if self._hops is None or not copies:
            return copies
        traced = self._hops.numbers(item.first, item.first + item.count - 1)
        made: Copies = []
        for index, queue, record in copies:
            number = item.first + index
            if number in traced and self._hops.admits():
                where = _hop_of(item.store, item.incarnation, number)
                record, tell = self._hops.copied(queue, record, where)
                stored.append(tell)
            made.append((index, queue, record))
        return made


def _hop_of(store: bytes, incarnation: bytes, number: int) -> Hop:
    return hop(PROTOCOL, store, incarnation, b"%d" % number)
