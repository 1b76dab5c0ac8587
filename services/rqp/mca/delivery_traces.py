"""Record the deliveries of one transmission queue as spans, where the process is traced.

Each send is an attempt and a hop of its own: a message that is resent goes over another connection, and so has another
name (`trace_propagation`). Both end with the confirmation or the failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from protos.rqp_mca import Data, Peer
from services.rqp.mca.channel import Channel
from services.rqp.mca.leased_messages import LeasedMessages
from services.rqp.mca.trace_propagation import MessageSequence
from services.store import Delivery, Queue
from services.store.model import Hop
from services.store.tracing import Leaving, TracePropagation

CONFIRMED, SENT = "confirmed", "sent"  # outcomes of RELIABLE and UNRELIABLE messages
UNKNOWN = "unknown"  # the queue was given up while the message was in flight


class DeliveryTraces:
    """The spans of the messages in flight of one queue."""

    def __init__(self, hops: TracePropagation, queue: Queue, leased: LeasedMessages) -> None:
        self._hops = hops
        self._queue = queue
        self._leased = leased
        self._channel: Channel | None = None  # the last one used
        self._sequence: MessageSequence | None = None  # of that channel; None if its local address is unknown
        # in order, each with its position in all messages of the queue
        self._out: deque[tuple[int, Peer, Leaving]] = deque()
        self._done = 0

    def sent(self, channel: Channel, start: int, run: Data) -> None:
        """Begin spans for a run that is written to the channel now. start: index of its first leased message."""
        count = len(run.records)
        traced = self._traced_by_number(channel, count)
        if not traced and not self._hops.has_out(self._queue):
            return

        def hop(place: int) -> Hop | None:
            if self._sequence is None or place not in traced:
                return None
            return self._sequence.hop(place, run.queue_id, run.records[place])

        found = self._traced_anyway(start, count, hop)
        self._begin_traces(traced, found, start, hop)
        peer, before = channel.endpoint.key, self._done + start
        self._out += ((before + place, peer, found[place]) for place in sorted(found))

    def _traced_by_number(self, channel: Channel, count: int) -> range:
        """Return which of the next `count` messages on the channel are traced because of their numbers."""
        if channel is not self._channel:
            self._channel, local = channel, channel.local
            self._sequence = None if local is None else MessageSequence(*local)
        return range(0) if self._sequence is None else self._sequence.passed(self._hops, count)

    def _traced_anyway(self, start: int, count: int, hop: Callable[[int], Hop | None]) -> dict[int, Leaving]:
        found: dict[int, Leaving] = {}
        if self._hops.has_out(self._queue):
            for first, delivery in self._leased.deliveries(start, count):
                for offset, parent in self._hops.spans(delivery).items():
                    if 0 <= (place := first + offset) < count:
                        found[place] = self._hops.tried(delivery, parent, hop(place))
        return found

    def _begin_traces(
        self, traced: range, found: dict[int, Leaving], start: int, hop: Callable[[int], Hop | None]
    ) -> None:
        """Begin traces of messages that belong to none here, as far as the rate limit admits."""
        for index, place in enumerate(traced):
            if place in found:
                continue
            if not self._hops.admits():
                self._hops.left_out(len(traced) - index - 1)
                return
            _, delivery = next(self._leased.deliveries(start + place, 1))
            found[place] = self._hops.tried(delivery, None, hop(place))

    def done(self, count: int, outcome: str) -> None:
        """End the spans of the first `count` leased messages: they are delivered."""
        self._done += count
        while self._out and self._out[0][0] < self._done:
            _, peer, leaving = self._out.popleft()
            leaving.ended(outcome, is_well=True, is_over=True, peer=peer)

    def failed(self, outcome: str) -> None:
        """End all spans: the messages in flight will be resent, though they may have arrived."""
        out, self._out = self._out, deque()
        for _, peer, leaving in out:
            leaving.ended(outcome, is_well=outcome == UNKNOWN, is_over=True, peer=peer)

    def given_up(self, deliveries: Iterable[Delivery], outcome: str) -> None:
        """Record messages that are dead-lettered instead of sent."""
        for delivery in deliveries:
            for parent in self._hops.spans(delivery).values():
                self._hops.tried(delivery, parent, None).ended(outcome, is_well=False, is_over=True)
