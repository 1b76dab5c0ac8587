"""The leased messages of one transmission queue, in order, the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby, islice

from protos.rqp_mca import MessageType
from services.store import Delivery
from services.store.model import Remote, records


def kind_of(is_certain: bool) -> MessageType:
    """Return the protocol's type of a message that must or need not be confirmed."""
    return MessageType.RELIABLE if is_certain else MessageType.UNRELIABLE


class LeasedMessages:
    """Maps the state machine's message indexes to the store's deliveries, each of which may hold several messages."""

    __slots__ = ("_certain", "_deliveries", "_records", "_remote", "bytes")

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._deliveries: deque[Delivery] = deque()
        self._records: deque[bytes] = deque()  # u32 length and body each, as sent (rqp_mca.md 1.1)
        # whether each is RELIABLE: an attribute may override the queue (3)
        self._certain: deque[bool] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def append(self, delivery: Delivery) -> None:
        """Add messages at the end, without their attributes: the protocol has no field for them."""
        bodies, certain = self._contents(delivery)
        self._deliveries.append(delivery)
        self._records.extend(bodies)
        self._certain.extend(certain)

    def _put_before(self, deliveries: list[Delivery]) -> None:
        """Put removed messages back in front."""
        for delivery in reversed(deliveries):
            bodies, certain = self._contents(delivery)
            self._deliveries.appendleft(delivery)
            self._records.extendleft(reversed(bodies))
            self._certain.extendleft(reversed(certain))

    def _contents(self, delivery: Delivery) -> tuple[list[bytes], list[bool]]:
        """Return records without attributes, and whether each is RELIABLE; count their octets."""
        plain = records.plain(delivery.blob, delivery.count)
        self.bytes += len(plain)
        if plain is delivery.blob:
            certain = [self._remote.reliable] * delivery.count
        else:
            attributes = (records.decode(record).attributes for record in delivery.records())
            certain = list(map(self._remote.is_certain, attributes))
        return records.split(plain, delivery.count), certain

    def records(self, start: int, count: int) -> list[bytes]:
        """Return `count` records from index `start` on."""
        return list(islice(self._records, start, start + count))

    def deliveries(self, start: int, count: int) -> Iterator[tuple[int, Delivery]]:
        """Yield the deliveries of these messages, each with its offset from `start`, negative if it began before."""
        first = -start
        for delivery in self._deliveries:
            if first >= count:
                return
            if first + delivery.count > 0:
                yield first, delivery
            first += delivery.count

    def is_certain(self, index: int) -> bool:
        """Return whether a message is RELIABLE."""
        return self._certain[index]

    def runs(self, start: int) -> list[tuple[bool, int]]:
        """Return runs of one kind from index `start` on: (is RELIABLE, number of messages)."""
        return [(kind, len(list(run))) for kind, run in groupby(islice(self._certain, start, None))]

    def remove(self, count: int) -> list[Delivery]:
        """Remove and return the first `count` messages; the caller settles them."""
        for _ in range(count):
            self.bytes -= len(self._records.popleft())
            self._certain.popleft()
        removed: list[Delivery] = []
        while count:
            first = self._deliveries[0]
            if first.count <= count:
                removed.append(self._deliveries.popleft())
                count -= first.count
            else:
                head, self._deliveries[0] = first.cut(count)
                removed.append(head)
                count = 0
        return removed

    def take_older(self, start: int, before_ms: int) -> list[Delivery]:
        """Remove and return messages from index `start` on that were put in at that time or before."""
        if not self._deliveries or self._deliveries[0].enqueued_ms > before_ms:
            return []  # the oldest are first
        kept = self.remove(start)
        old: list[Delivery] = []
        while self._deliveries and self._deliveries[0].enqueued_ms <= before_ms:
            old += self.remove(self._deliveries[0].count)
        self._put_before(kept)
        return old

    def keep(self, count: int) -> list[Delivery]:
        """Remove and return all but the first `count`."""
        kept, rest = self.remove(count), list(self._deliveries)
        for each in (self._deliveries, self._records, self._certain):
            each.clear()
        self.bytes = 0
        self._put_before(kept)
        return rest
