"""Subscribers without a network: their output can be read, and there is always room."""

from __future__ import annotations

from services.pubsub.subscriber import Subscriber, Subscription
from services.store.log.log import Entry, Place


class FakeWire:
    """A wire that always has room."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def backlog(self) -> int:
        return 0


def entry(era: int, serial: int, messages: int = 1) -> Entry:
    """Return an entry of lines `SEND t m<serial>`; the last one has this serial."""
    lines = [b"SEND t m%d\n" % number for number in range(serial - messages + 1, serial + 1)]
    return Entry(Place(era, serial), messages, b"s i", serial - messages + 1, False, b"".join(lines))


def subscribe(subscriber: Subscriber, identifier: bytes, since: Place, number: int) -> Subscription:
    """Subscribe to the tag `t`."""
    made = subscriber.by_identifier[identifier] = Subscription(subscriber, identifier, b"t", False)
    made.since, made.number = since, number
    return made
