"""The messages of one transmission queue that are on their way: leased, in order, the oldest first."""

from __future__ import annotations

from collections import deque
from itertools import islice

from services.store import Delivery, records


class Line:
    """The machine counts messages, the store leases stretches of them: this holds both together."""

    __slots__ = ("_deliveries", "_records", "bytes")

    def __init__(self) -> None:
        self._deliveries: deque[Delivery] = deque()
        self._records: deque[bytes] = deque()  # u32 length and body each: as they go out (rqp_mca.md 1.1)
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def append(self, delivery: Delivery) -> None:
        """Attributes stay behind: the protocol has no place for them."""
        plain = records.plain(delivery.blob, delivery.count)
        self._deliveries.append(delivery)
        self._records.extend(records.split(plain, delivery.count))
        self.bytes += len(plain)

    def records(self, start: int, count: int) -> list[bytes]:
        """`count` of them from place `start` on."""
        return list(islice(self._records, start, start + count))

    def remove(self, count: int) -> list[Delivery]:
        """The first `count`; they are somebody else's to settle."""
        for _ in range(count):
            self.bytes -= len(self._records.popleft())
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

    def keep(self, count: int) -> list[Delivery]:
        """All but the first `count`, taken out."""
        kept = self.remove(count)
        rest, self._deliveries = list(self._deliveries), deque(kept)
        self._records.clear()
        self.bytes = 0
        for delivery in kept:
            plain = records.plain(delivery.blob, delivery.count)
            self._records.extend(records.split(plain, delivery.count))
            self.bytes += len(plain)
        return rest
