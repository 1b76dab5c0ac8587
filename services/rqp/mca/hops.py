"""What both ends know of a MSG_DATA: who opened its connection, and how many went over that before (rqp_mca.md 1).

Its frame has no id, but a connection keeps its frames in order, and both ends count them. That alone decides whether
one is traced. A port is used again, so a digest of the body is in the name, too: only of those that are traced.
"""

from __future__ import annotations

import hashlib
import ipaddress
import zlib

from protos.rqp_mca import Data
from services.rqp.mca.receiver import PROTOCOL
from services.store import Queue
from services.store.model import Hop, hop, trace_context
from services.store.tracing import TracePropagation

Came = list[tuple[int, Hop]]  # places in a run


class Passage:
    """The MSG_DATAs of one connection, in whichever direction one looks at them."""

    __slots__ = ("_first", "_name", "_next", "_offset")

    def __init__(self, address: str, port: int) -> None:
        """Of the sending agent, as a `Wire` tells them. Behind an address translation the ends do not see the same."""
        self._name = ipaddress.ip_address(address).packed + port.to_bytes(2)
        self._offset = zlib.crc32(self._name)
        self._first = self._next = 1  # numbers: of the run that was passed last, and of what comes behind it

    def passed(self, hops: TracePropagation, count: int) -> range:
        """The next `count` of them, a run: which are traced, by their places in it."""
        self._first, self._next = self._next, self._next + count
        numbers = hops.numbers(self._first, self._next - 1, self._offset)
        return range(numbers.start - self._first, count, numbers.step) if numbers else range(0)

    def hop(self, place: int, queue_id: int, record: bytes) -> Hop:
        """Of one of the run that was passed last. record: as it stands in its frame, length and body."""
        told = b"%d %d" % (self._first + place, queue_id)
        return hop(PROTOCOL, self._name, told, hashlib.sha256(record).digest())


class Arrivals:
    """What comes in on one connection."""

    __slots__ = ("_hops", "_passage")

    def __init__(self, hops: TracePropagation, address: str, port: int) -> None:
        self._hops = hops
        self._passage = Passage(address, port)

    def came(self, event: Data) -> Came:
        """Those of a run whose traces go on here, by their places; to be asked once for each run, in order."""
        found: Came = []
        traced = self._passage.passed(self._hops, len(event.records))
        for place in traced:
            if not self._hops.admits():
                self._hops.left_out(len(traced) - len(found) - 1)
                break
            found.append((place, self._passage.hop(place, event.queue_id, event.records[place])))
        return found


def stamp(queue: Queue, event: Data, came: Came) -> list[int]:
    """Puts their contexts into the run; where those stand that have one now."""
    carried: list[int] = []
    for place, each in came:
        stamped = trace_context.stamped_within(event.records[place], each.context, queue.spec.max_bytes)
        if stamped is not None:
            event.records[place] = stamped
            carried.append(place)
    return carried
