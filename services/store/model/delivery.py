"""Represent a delivery: consecutive messages of one entry, leased to this process by a take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.store.model import records

if TYPE_CHECKING:
    from services.store.model.queues import Queue


@dataclass(slots=True)
class Delivery:
    """`count` messages of one entry from `start` on; settled, returned or rejected as a whole or after `cut`."""

    queue: Queue  # the queue that it was taken from
    lot: bytes  # the lease batch; '' for a peek, which leases nothing
    entry: bytes  # opaque
    size: int  # messages in the whole entry
    start: int  # index of the first message in the entry
    count: int  # of messages
    blob: bytes  # the records with their heads
    stamp: bytes  # "<ms> <origin>"
    history: bytes  # "<acquired> <failed> [<note>]", empty for a first delivery
    dropped: int = -1  # octets of dropped bodies; -1: bodies are present
    settled: bool = False  # at-most-once: settled before delivery

    @property
    def position(self) -> int:
        """Position of the first message in the queue's delivery order."""
        return int(self.entry.rpartition(b"-")[2]) * records.PER_ENTRY + self.start

    @property
    def mask(self) -> int:
        """Bits of the entry's messages that belong to this delivery."""
        return ((1 << self.count) - 1) << self.start

    @property
    def body_bytes(self) -> int:
        """Octets of bodies and attributes."""
        return len(self.blob) - 4 * self.count if self.dropped < 0 else self.dropped

    def drop_bodies(self) -> None:
        """Free the bodies; the delivery can still be settled, returned or rejected."""
        self.dropped, self.blob = self.body_bytes, b""

    @property
    def enqueued_ms(self) -> int:
        """Time of the put, ms since 1970 by the store's clock."""
        return int(self.stamp.partition(b" ")[0])

    @property
    def origin(self) -> str:
        """The producer, as its edge named it."""
        return self.stamp.partition(b" ")[2].decode("utf-8", "replace")

    @property
    def acquired(self) -> int:
        """Number of deliveries, including this one."""
        return int(self.history.split(b" ")[0]) if self.history else 1

    @property
    def failed(self) -> int:
        """Number of failed deliveries, which alone count towards max_deliveries."""
        return int(self.history.split(b" ")[1]) if self.history else 0

    @property
    def note(self) -> str:
        """The note of an earlier holder (`Messages.note`), '' without one."""
        return self.history.split(b" ", 2)[2].decode() if self.history.count(b" ") > 1 else ""

    def records(self) -> list[bytes]:
        """Return the records, heads included."""
        return records.split(self.blob, self.count)

    def fitting(self, octets: int) -> int:
        """Return how many leading messages have at most `octets` of bodies together."""
        for index, record in enumerate(self.records()):
            octets -= len(record) - 4
            if octets < 0:
                return index
        return self.count

    def cut(self, count: int) -> tuple[Delivery, Delivery]:
        """Return the first `count` messages and the rest as two deliveries."""
        end, start = records.cut(self.blob, count), self.start + count
        lease, origin = (self.queue, self.lot, self.entry, self.size), (self.stamp, self.history)
        return (
            Delivery(*lease, self.start, count, self.blob[:end], *origin),
            Delivery(*lease, start, self.count - count, self.blob[end:], *origin),
        )


def parse(queue: Queue, reply: list[bytes | int], first: int = 1) -> list[Delivery]:
    """Parse the flat reply of a take (lua/take.lua: eight values for each delivery)."""
    return [Delivery(queue, *reply[i : i + 8]) for i in range(first, len(reply), 8)]  # type: ignore[arg-type]


def share(deliveries: list[Delivery], wants: list[int]) -> list[list[Delivery]]:
    """Distribute deliveries to takers in the order of their requests, each at most its `want` of messages."""
    shares: list[list[Delivery]] = []
    at, rest = 0, None
    for want in wants:
        share: list[Delivery] = []
        while want and (rest or at < len(deliveries)):
            if rest is None:
                rest = deliveries[at]
                at += 1
            if rest.count <= want:
                share.append(rest)
                want -= rest.count
                rest = None
            else:
                head, rest = rest.cut(want)
                share.append(head)
                want = 0
        shares.append(share)
    return shares
