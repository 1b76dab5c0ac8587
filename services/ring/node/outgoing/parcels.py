"""One message for the successor, and the settling of those that he has answered (ring.md 2.2)."""

from __future__ import annotations

from typing import Protocol

from protos.ring import resent
from services.store import Delivery
from services.store.model import records

ORPHAN = -1  # the life of a parcel that is nobody's any more


class Keeper(Protocol):
    def acknowledged(self, parcel: Stored) -> None: ...

    def returned(self, parcel: Stored) -> None: ...


class Stored:
    """A Parcel (passage.py). `delivery` is None while the store has not told yet where it stands.

    `stored` is what the store has; `payload`, what is sent, may say that it is sent again (ring.md 5.3).
    """

    __slots__ = (
        "_keeper",
        "delivery",
        "index",
        "is_answered",
        "is_begun",
        "is_put_on",
        "is_safe",
        "life",
        "octets",
        "payload",
        "stored",
    )

    def __init__(self, keeper: Keeper, life: int, payload: bytes, is_begun: bool) -> None:
        self._keeper = keeper
        self.life = life
        self.payload = self.stored = payload
        self.is_begun = is_begun  # this node puts it on the ring
        self.is_put_on = False  # and the relay knows
        self.is_answered = False
        self.is_safe = False  # it is known to have been stored
        self.delivery: Delivery | None = None
        self.index = 0
        self.octets = 0

    def stands(self, delivery: Delivery, index: int, octets: int) -> None:
        self.delivery, self.index, self.octets = delivery, index, octets

    @property
    def place(self) -> tuple[bytes, int]:
        assert self.delivery is not None
        return self.delivery.entry, self.delivery.start + self.index

    def acknowledged(self) -> None:
        self._keeper.acknowledged(self)

    def returned(self) -> None:
        self.say_again()
        self._keeper.returned(self)

    def say_again(self) -> None:
        """It may have arrived before."""
        self.payload = resent(self.stored)


def payload_of(record: bytes) -> bytes:
    return records.decode(record).body if record[0] else record[4:]


def merged(parcels: list[Stored]) -> list[Delivery]:
    """What settles them, neighbours together, without their bodies."""
    deliveries: list[Delivery] = []
    at = 0
    while at < len(parcels):
        first, end = parcels[at], at + 1
        octets = first.octets
        while (
            end < len(parcels)
            and parcels[end].delivery is first.delivery
            and parcels[end].index == first.index + end - at
        ):
            octets += parcels[end].octets
            end += 1
        deliveries.append(_part(first, end - at, octets))
        at = end
    return deliveries


def _part(first: Stored, count: int, octets: int) -> Delivery:
    d = first.delivery
    assert d is not None
    return Delivery(
        d.queue, d.lot, d.entry, d.size, d.start + first.index, count, b"", d.stamp, d.history, octets
    )
