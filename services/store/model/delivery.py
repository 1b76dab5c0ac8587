"""What a take gives out: a stretch of one entry, leased to this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.store.model import records

if TYPE_CHECKING:
    from services.store.model.queues import Queue


@dataclass(slots=True)
class Delivery:
    """`count` messages of one entry from `start` on; settled, returned or rejected as a whole or cut apart."""

    queue: Queue
    lot: bytes  # '' for a peek: nothing is leased
    entry: bytes  # opaque
    size: int  # messages in the whole entry
    start: int
    count: int
    blob: bytes  # the records, heads included
    stamp: bytes  # "<ms> <origin>"
    history: bytes  # "<acquired> <failed> [<note>]", empty for a first delivery
    dropped: int = -1  # octets of bodies that are not kept any more; -1: they are all here
    settled: bool = False  # at most once: it was settled before anybody saw it

    @property
    def position(self) -> int:
        """Of the first message: where it stands in the queue, which gives them out in this order."""
        return int(self.entry.rpartition(b"-")[2]) * records.PER_ENTRY + self.start

    @property
    def mask(self) -> int:
        return ((1 << self.count) - 1) << self.start

    @property
    def body_bytes(self) -> int:
        """Attributes included."""
        return len(self.blob) - 4 * self.count if self.dropped < 0 else self.dropped

    def drop_bodies(self) -> None:
        """Keeps only what it takes to settle, return or reject it."""
        self.dropped, self.blob = self.body_bytes, b""

    @property
    def enqueued_ms(self) -> int:
        return int(self.stamp.partition(b" ")[0])

    @property
    def origin(self) -> str:
        return self.stamp.partition(b" ")[2].decode("utf-8", "replace")

    @property
    def acquired(self) -> int:
        """How often it was given out, this time included."""
        return int(self.history.split(b" ")[0]) if self.history else 1

    @property
    def failed(self) -> int:
        """How often a delivery failed; only this counts towards max_deliveries."""
        return int(self.history.split(b" ")[1]) if self.history else 0

    @property
    def note(self) -> str:
        """Return what an earlier holder wrote beside it (`Messages.note`), '' if nothing."""
        return self.history.split(b" ", 2)[2].decode() if self.history.count(b" ") > 1 else ""

    def records(self) -> list[bytes]:
        return records.split(self.blob, self.count)

    def fitting(self, octets: int) -> int:
        """How many messages, from the first on, have bodies of at most so many octets together."""
        for index, record in enumerate(self.records()):
            octets -= len(record) - 4
            if octets < 0:
                return index
        return self.count

    def cut(self, count: int) -> tuple[Delivery, Delivery]:
        """The first `count` messages, and the rest."""
        end = records.cut(self.blob, count)
        return (
            Delivery(
                self.queue,
                self.lot,
                self.entry,
                self.size,
                self.start,
                count,
                self.blob[:end],
                self.stamp,
                self.history,
            ),
            Delivery(
                self.queue,
                self.lot,
                self.entry,
                self.size,
                self.start + count,
                self.count - count,
                self.blob[end:],
                self.stamp,
                self.history,
            ),
        )


def parse(queue: Queue, reply: list[bytes | int], first: int = 1) -> list[Delivery]:
    """Deliveries from the flat reply of a take (lua/take.lua: eight values each)."""
    return [Delivery(queue, *reply[i : i + 8]) for i in range(first, len(reply), 8)]  # type: ignore[arg-type]


def share(deliveries: list[Delivery], wants: list[int]) -> list[list[Delivery]]:
    """Deliveries handed to takers in the order in which they asked, each at most what it wanted."""
    shares: list[list[Delivery]] = []
    at, rest = 0, None
    for want in wants:
        mine: list[Delivery] = []
        while want and (rest or at < len(deliveries)):
            if rest is None:
                rest = deliveries[at]
                at += 1
            if rest.count <= want:
                mine.append(rest)
                want -= rest.count
                rest = None
            else:
                head, rest = rest.cut(want)
                mine.append(head)
                want = 0
        shares.append(mine)
    return shares
