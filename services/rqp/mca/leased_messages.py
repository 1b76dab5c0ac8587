"""The messages of one transmission queue that are on their way: leased, in order, the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby, islice

from protos.rqp_mca import MessageType
from services.store import Delivery
from services.store.model import Remote, records


def kind_of(is_certain: bool) -> MessageType:
    return MessageType.RELIABLE if is_certain else MessageType.UNRELIABLE


class LeasedMessages:
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
        bodies, certain = self._contents(delivery)
        self._deliveries.append(delivery)
        self._records.extend(bodies)
        self._certain.extend(certain)

    def _put_before(self, deliveries: list[Delivery]) -> None:
        """What was removed is in front again."""
        for delivery in reversed(deliveries):
            bodies, certain = self._contents(delivery)
            self._deliveries.appendleft(delivery)
            self._records.extendleft(reversed(bodies))
            self._certain.extendleft(reversed(certain))

    def _contents(self, delivery: Delivery) -> tuple[list[bytes], list[bool]]:
        """Records without attributes, and whether each is RELIABLE; their octets are counted."""
        plain = records.plain(delivery.blob, delivery.count)
        self.bytes += len(plain)
        if plain is delivery.blob:
            certain = [self._remote.reliable] * delivery.count
        else:
            told = (records.decode(record).attributes for record in delivery.records())
            certain = list(map(self._remote.is_certain, told))
        return records.split(plain, delivery.count), certain

    def records(self, start: int, count: int) -> list[bytes]:
        """`count` of them from place `start` on."""
        return list(islice(self._records, start, start + count))

    def stretches(self, start: int, count: int) -> Iterator[tuple[int, Delivery]]:
        """What the messages from place `start` on were leased as, and how many of those stand before each; the first
        may have begun before them."""
        first = -start
        for delivery in self._deliveries:
            if first >= count:
                return
            if first + delivery.count > 0:
                yield first, delivery
            first += delivery.count

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

    def take_older(self, start: int, before_ms: int) -> list[Delivery]:
        """From place `start` on, what was put in at that time or before, up to the first that was not: taken out."""
        if not self._deliveries or self._deliveries[0].enqueued_ms > before_ms:
            return []  # the oldest are first
        kept = self.remove(start)
        old: list[Delivery] = []
        while self._deliveries and self._deliveries[0].enqueued_ms <= before_ms:
            old += self.remove(self._deliveries[0].count)
        self._put_before(kept)
        return old

    def keep(self, count: int) -> list[Delivery]:
        """All but the first `count`, taken out."""
        kept, rest = self.remove(count), list(self._deliveries)
        for each in (self._deliveries, self._records, self._certain):
            each.clear()
        self.bytes = 0
        self._put_before(kept)
        return rest
