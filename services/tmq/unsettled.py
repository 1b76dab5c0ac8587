"""Replies to DNQs outside a transaction, until they are settled: leases that the next request ends (tmq.md 6.1)."""

from __future__ import annotations

from services.store import OURSELVES, Delivery, Source, StoreError
from services.store.errors import QueueUnknown
from services.tmq.conversation import TmqConversation


class Unsettled:
    """What a connection was given and has not shown to have got; `deliveries` is empty most of the time."""

    __slots__ = ("_count", "_talk", "deliveries")

    def __init__(self, talk: TmqConversation) -> None:
        self._talk = talk
        self._count = 0  # messages
        self.deliveries: list[Delivery] = []

    def __bool__(self) -> bool:
        return bool(self.deliveries)

    def admits(self, count: int) -> int:
        """How many of so many DNQs may be given a message."""
        return min(count, self._talk.service.settings.max_unsettled - self._count)

    def add(self, got: list[Delivery]) -> None:
        self.deliveries += got
        self._count += sum(d.count for d in got)

    def take_all(self) -> list[Delivery]:
        """They are somebody else's to settle or to give back."""
        taken, self.deliveries, self._count = self.deliveries, [], 0
        return taken

    def settle(self) -> None:
        """Settling is not part of the sequence of requests: it may go with any call, as soon as possible."""
        by_domain: dict[str, list[Delivery]] = {}
        for d in self.take_all():
            by_domain.setdefault(d.queue.domain, []).append(d)
        for deliveries in by_domain.values():
            self._talk.service.pipe(deliveries[0].queue).settle(Source(OURSELVES), deliveries, self._settled)

    def _settled(self, error: StoreError | None) -> None:
        """A client must not go on as if a message had been its own that others are given too (6.1)."""
        talk = self._talk
        if error is None or talk.gone or isinstance(error, QueueUnknown):
            return  # with its queue a message is gone for everybody
        if not talk.closing:
            talk.wire.refuse(error.reason, str(error))
            talk.closing = True
            talk.wire.abort()
