"""The messages of one transmission queue that are on their way: leased, in order, the oldest first."""

from __future__ import annotations

from collections import deque
from itertools import groupby, islice, repeat

from services.store import Delivery, records
from services.store.rqp_binding import Remote


class Line:
    """The machine counts messages, the store leases stretches of them: this holds both together."""

    __slots__ = ("_certain", "_deliveries", "_records", "_remote", "bytes")

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._deliveries: deque[Delivery] = deque()
        self._records: deque[bytes] = deque()  # u32 length and body each: as they go out (rqp_mca.md 1.1)
        self._certain: deque[bool] = deque()  # whether each is RELIABLE: it may say so for itself (3)
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def append(self, delivery: Delivery) -> None:
        """Attributes stay behind: the protocol has no place for them."""
        plain = records.plain(delivery.blob, delivery.count)
        self._deliveries.append(delivery)
        self._records.extend(records.split(plain, delivery.count))
        if plain is delivery.blob:
            self._certain.extend(repeat(self._remote.reliable, delivery.count))
        else:
            told = (records.decode(record).attributes for record in delivery.records())
            self._certain.extend(map(self._remote.is_certain, told))
        self.bytes += len(plain)

    def records(self, start: int, count: int) -> list[bytes]:
        """`count` of them from place `start` on."""
        return list(islice(self._records, start, start + count))

    def is_certain(self, place: int) -> bool:
        return self._certain[place]

    def runs(self, start: int) -> list[tuple[bool, int]]:
        """From place `start` on, how many certain or uncertain ones stand together."""
        return [(kind, len(list(run))) for kind, run in groupby(islice(self._certain, start, None))]

    def remove(self, count: int) -> list[Delivery]:
        """The first `count`; they are somebody else's to settle."""
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

    def keep(self, count: int) -> list[Delivery]:
        """All but the first `count`, taken out."""
        kept, rest = self.remove(count), list(self._deliveries)
        for each in (self._deliveries, self._records, self._certain):
            each.clear()
        self.bytes = 0
        for delivery in kept:
            self.append(delivery)
        return rest
