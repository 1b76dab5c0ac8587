"""Messages that were pulled, until they are settled: leases that the next request ends (ring.md 5.2, tmq.md 6.1)."""

from __future__ import annotations

from services.ring.asking import Brought
from services.ring.clients.conversation import ClientConversation
from services.store import OURSELVES, Delivery, Source, StoreError
from services.store.model import QueueUnknown


class Unsettled:
    """What a connection was given and has not shown to have got: of our queues, and what the ring brought."""

    __slots__ = ("_brought", "_count", "_deliveries", "_talk")

    def __init__(self, talk: ClientConversation) -> None:
        self._talk = talk
        self._count = 0  # messages
        self._deliveries: list[Delivery] = []
        self._brought: list[Brought] = []

    def __bool__(self) -> bool:
        return self._count > 0

    def admits(self, count: int) -> int:
        """How many of so many pulls may be given a message."""
        return min(count, self._talk.service.settings.clients.max_unsettled - self._count)

    def add(self, got: list[Delivery]) -> None:
        self._deliveries += got
        self._count += sum(d.count for d in got)

    def add_brought(self, brought: Brought) -> None:
        self._brought.append(brought)
        self._count += 1

    def lose(self) -> list[Delivery]:
        """The connection has gone: what must go back. What the ring brought goes back by itself (5.4)."""
        lost, self._deliveries, self._brought, self._count = self._deliveries, [], [], 0
        return lost

    def settle(self) -> None:
        """Settling is not part of the sequence of requests: it may go with any call, as soon as possible."""
        brought = self._brought
        by_domain: dict[str, list[Delivery]] = {}
        for d in self.lose():
            by_domain.setdefault(d.queue.domain, []).append(d)
        for deliveries in by_domain.values():
            self._talk.service.pipe(deliveries[0].queue).messages.settle(
                Source(OURSELVES), deliveries, self._settled
            )
        for one in brought:
            one.settle()

    def _settled(self, error: StoreError | None) -> None:
        """A client must not go on as if a message had been its own that others are given too (tmq.md 6.1)."""
        talk = self._talk
        if error is None or talk.gone or isinstance(error, QueueUnknown):
            return  # with its queue a message is gone for everybody
        if not talk.closing:
            talk.wire.refuse(error.reason, str(error))
            talk.closing = True
            talk.wire.abort()
