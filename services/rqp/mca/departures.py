"""What is told of the messages of one transmission queue that leave, where the process is traced.

Each time one is sent is an attempt and a hop of its own, as what is sent again goes over another connection, and so has
another name (`hops`). Both are over with the confirm, or with what came instead of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from protos.rqp_mca import Data, Peer
from services.rqp.mca.channel import Channel
from services.rqp.mca.hops import Passage
from services.rqp.mca.line import Line
from services.store import Delivery, Queue
from services.store.model import Hop
from services.store.tracing import Leaving, TracePropagation

CONFIRMED, SENT = "confirmed", "sent"  # outcomes: of a RELIABLE one, of an UNRELIABLE one
UNKNOWN = "unknown"  # the queue was let go while it was out


class Departures:
    @classmethod
    def of(cls, hops: TracePropagation | None, queue: Queue, line: Line) -> Departures | None:
        """None where nothing is traced."""
        return None if hops is None else cls(hops, queue, line)

    def __init__(self, hops: TracePropagation, queue: Queue, line: Line) -> None:
        self._hops = hops
        self._queue = queue
        self._line = line
        self._channel: Channel | None = None  # that was last sent something on
        self._passage: Passage | None = None  # of it; None where nobody knows its end of ours
        self._out: deque[tuple[int, Peer, Leaving]] = (
            deque()
        )  # in order, each with how many had to be done before it
        self._done = 0

    def sent(self, channel: Channel, start: int, run: Data) -> None:
        """run: what is written to the channel now, from place `start` of the line on."""
        count = len(run.records)
        traced = self._passage_of(channel, count)
        if not traced and not self._hops.has_out(self._queue):
            return

        def hop(place: int) -> Hop | None:
            if self._passage is None or place not in traced:
                return None
            return self._passage.hop(place, run.queue_id, run.records[place])

        found = self._traced_anyway(start, count, hop)
        self._begin_traces(traced, found, start, hop)
        peer, before = channel.endpoint.key, self._done + start
        self._out += ((before + place, peer, found[place]) for place in sorted(found))

    def _passage_of(self, channel: Channel, count: int) -> range:
        """Which of the next `count` on it are traced by their numbers alone."""
        if channel is not self._channel:
            self._channel, local = channel, channel.local
            self._passage = None if local is None else Passage(*local)
        return range(0) if self._passage is None else self._passage.passed(self._hops, count)

    def _traced_anyway(self, start: int, count: int, hop: Callable[[int], Hop | None]) -> dict[int, Leaving]:
        found: dict[int, Leaving] = {}
        if self._hops.has_out(self._queue):
            for first, delivery in self._line.stretches(start, count):
                for offset, parent in self._hops.spans(delivery).items():
                    if 0 <= (place := first + offset) < count:
                        found[place] = self._hops.tried(delivery, parent, hop(place))
        return found

    def _begin_traces(
        self, traced: range, found: dict[int, Leaving], start: int, hop: Callable[[int], Hop | None]
    ) -> None:
        """Of those that are in no trace here, as far as there may be more."""
        for index, place in enumerate(traced):
            if place in found:
                continue
            if not self._hops.admits():
                self._hops.left_out(len(traced) - index - 1)
                return
            _, delivery = next(self._line.stretches(start + place, 1))
            found[place] = self._hops.tried(delivery, None, hop(place))

    # how it ends

    def done(self, count: int, outcome: str) -> None:
        """The first `count` of the line have got through."""
        self._done += count
        while self._out and self._out[0][0] < self._done:
            _, peer, leaving = self._out.popleft()
            leaving.ended(outcome, is_well=True, is_over=True, peer=peer)

    def failed(self, outcome: str) -> None:
        """All that are out are unsent again; they may have arrived all the same."""
        out, self._out = self._out, deque()
        for _, peer, leaving in out:
            leaving.ended(outcome, is_well=outcome == UNKNOWN, is_over=True, peer=peer)

    def given_up(self, deliveries: Iterable[Delivery], outcome: str) -> None:
        """They are not sent at all."""
        for delivery in deliveries:
            for parent in self._hops.spans(delivery).values():
                self._hops.tried(delivery, parent, None).ended(outcome, is_well=False, is_over=True)
