"""Derive trace ids of MSG_DATAs from the connection and the message's number on it (rqp_mca.md 1).

The frame has no id, but a connection keeps its frames in order, and both ends count them; the number alone decides
whether a message is traced. As ports are reused, the name of a traced message includes a digest of its body.
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

TracedPlaces = list[tuple[int, Hop]]  # indexes in a run


class MessageSequence:
    """The MSG_DATAs of one connection, at either end."""

    __slots__ = ("_first", "_name", "_next", "_offset")

    def __init__(self, address: str, port: int) -> None:
        """Address and port are the sending agent's. Behind address translation both ends see different ones."""
        self._name = ipaddress.ip_address(address).packed + port.to_bytes(2)
        self._offset = zlib.crc32(self._name)
        self._first = self._next = 1  # numbers: first of the last run, and of the next run

    def passed(self, hops: TracePropagation, count: int) -> range:
        """Count a run of `count` messages. Return the indexes of those that are traced."""
        self._first, self._next = self._next, self._next + count
        numbers = hops.numbers(self._first, self._next - 1, self._offset)
        return range(numbers.start - self._first, count, numbers.step) if numbers else range(0)

    def hop(self, place: int, queue_id: int, record: bytes) -> Hop:
        """Return the hop of a message in the last run. record: length and body as in the frame."""
        number = b"%d %d" % (self._first + place, queue_id)
        return hop(PROTOCOL, self._name, number, hashlib.sha256(record).digest())


class IncomingTraces:
    """The traces of messages received on one connection."""

    __slots__ = ("_hops", "_sequence")

    def __init__(self, hops: TracePropagation, address: str, port: int) -> None:
        self._hops = hops
        self._sequence = MessageSequence(address, port)

    def received(self, event: Data) -> TracedPlaces:
        """Return the messages of a run whose traces continue here. To be called once for each run, in order."""
        found: TracedPlaces = []
        traced = self._sequence.passed(self._hops, len(event.records))
        for place in traced:
            if not self._hops.admits():
                self._hops.left_out(len(traced) - len(found) - 1)
                break
            found.append((place, self._sequence.hop(place, event.queue_id, event.records[place])))
        return found


def stamp(queue: Queue, event: Data, traced: TracedPlaces) -> list[int]:
    """Put trace contexts into the run. Return the indexes of the messages that have one now."""
    carried: list[int] = []
    for place, each in traced:
        stamped = trace_context.stamped_within(event.records[place], each.context, queue.spec.max_bytes)
        if stamped is not None:
            event.records[place] = stamped
            carried.append(place)
    return carried
