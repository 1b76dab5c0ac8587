"""A stored message for the successor, and the settling of answered ones (ring.md 2.2)."""

from __future__ import annotations

from typing import Protocol

from protos.ring import resent
from services.store import Delivery
from services.store.model import records

ORPHAN = -1  # the generation of a message that must not be sent any more


class Keeper(Protocol):
    """The source of the messages."""

    def acknowledged(self, message: StoredMessage) -> None:
        """Note that the successor has answered a message."""

    def returned(self, message: StoredMessage) -> None:
        """Note that the link broke before the answer."""


class StoredMessage:
    """An OutgoingMessage. `delivery` is None while its place in the store is unknown.

    `stored` is the payload in the store; `payload`, which is sent, may be marked as sent again (ring.md 5.3).
    """

    __slots__ = (
        "_keeper",
        "delivery",
        "generation",
        "index",
        "is_answered",
        "is_begun",
        "is_put_on",
        "is_safe",
        "octets",
        "payload",
        "stored",
    )

    def __init__(self, keeper: Keeper, generation: int, payload: bytes, is_begun: bool) -> None:
        self._keeper = keeper
        self.generation = generation
        self.payload = self.stored = payload
        self.is_begun = is_begun  # this node begins it
        self.is_put_on = False  # the relay has been told so
        self.is_answered = False
        self.is_safe = False  # known to be stored
        self.delivery: Delivery | None = None
        self.index = 0
        self.octets = 0

    def locate(self, delivery: Delivery, index: int, octets: int) -> None:
        """Set the message's place in a delivery."""
        self.delivery, self.index, self.octets = delivery, index, octets

    @property
    def place(self) -> tuple[bytes, int]:
        """The entry and the index in it, which stay the same for every delivery."""
        assert self.delivery is not None
        return self.delivery.entry, self.delivery.start + self.index

    def acknowledged(self) -> None:
        """Pass on that the successor has answered."""
        self._keeper.acknowledged(self)

    def returned(self) -> None:
        """Mark the payload as sent again and pass on that the link broke."""
        self.mark_resent()
        self._keeper.returned(self)

    def mark_resent(self) -> None:
        """Mark the payload as sent again: the first copy may have arrived."""
        self.payload = resent(self.stored)


def payload_of(record: bytes) -> bytes:
    """Return the body of a record."""
    return records.decode(record).body if record[0] else record[4:]


def merged(messages: list[StoredMessage]) -> list[Delivery]:
    """Return deliveries, without bodies, that settle the messages; neighbours share one."""
    deliveries: list[Delivery] = []
    at = 0
    while at < len(messages):
        first, end = messages[at], at + 1
        octets = first.octets
        while (
            end < len(messages)
            and messages[end].delivery is first.delivery
            and messages[end].index == first.index + end - at
        ):
            octets += messages[end].octets
            end += 1
        deliveries.append(_part(first, end - at, octets))
        at = end
    return deliveries


def _part(first: StoredMessage, count: int, octets: int) -> Delivery:
    d = first.delivery
    assert d is not None
    return Delivery(
        d.queue, d.lot, d.entry, d.size, d.start + first.index, count, b"", d.stamp, d.history, octets
    )
