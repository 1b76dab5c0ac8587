"""Messages that a client was given, until they are settled: leases that its next request ends (tmq.md 6.1)."""

from __future__ import annotations

from collections.abc import Callable

from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService
from services.store import INTERNAL_CLIENT, Delivery, Source
from services.store.model import MAX_MESSAGES, Done, join_done


class Unsettled:
    """What a connection was given and has not shown to have got; `deliveries` is empty most of the time."""

    __slots__ = ("_brought", "_conversation", "_count", "_most", "_service", "deliveries")

    def __init__(self, conversation: QueueConversation, service: QueueService, most: int) -> None:
        """most: messages at a time."""
        self._conversation = conversation
        self._service = service
        self._most = most
        self._count = 0  # messages
        self.deliveries: list[Delivery] = []
        self._brought: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return self._count > 0

    def admits(self, count: int) -> int:
        """How many of so many requests may be given a message."""
        return min(count, self._most - self._count)

    def add(self, got: list[Delivery]) -> None:
        self.deliveries += got
        self._count += sum(d.count for d in got)

    def add_brought(self, settle: Callable[[], None]) -> None:
        """Add a message of another system, which settles it and otherwise gives it back by itself."""
        self._brought.append(settle)
        self._count += 1

    def take_all(self) -> list[Delivery]:
        """Return the deliveries: they are the caller's to settle or to give back."""
        taken, self.deliveries, self._brought, self._count = self.deliveries, [], [], 0
        return taken

    def settle(self) -> None:
        """Settling is not part of the sequence of requests: it may go with any call, as soon as possible."""
        brought = self._brought
        settle_all(self._service, self.take_all(), self._conversation.reset_if_lost)
        for settle in brought:
            settle()


def settle_all(service: QueueService, deliveries: list[Delivery], done: Done) -> None:
    """Settle deliveries of any queues. done: called once, with the first error or None."""
    if len(deliveries) == 1:  # the most frequent case, on the path of each message
        service.pipe(deliveries[0].queue).messages.settle(Source(INTERNAL_CLIENT), deliveries, done)
        return
    parts = [
        domain[start : start + MAX_MESSAGES]
        for domain in _by_domain(deliveries)
        for start in range(0, len(domain), MAX_MESSAGES)
    ]
    each = join_done(done, len(parts))
    for part in parts:
        service.pipe(part[0].queue).messages.settle(Source(INTERNAL_CLIENT), part, each)


def release_all(service: QueueService, deliveries: list[Delivery], error: str, done: Done) -> None:
    """Return failed deliveries of any queues to their places. done: called once, with the first error or None."""
    parts = _by_domain(deliveries)
    each = join_done(done, len(parts))
    for part in parts:
        service.pipe(part[0].queue).messages.release(
            Source(INTERNAL_CLIENT), part, failed=True, error=error, done=each
        )


def _by_domain(deliveries: list[Delivery]) -> list[list[Delivery]]:
    by_domain: dict[str, list[Delivery]] = {}
    for d in deliveries:
        by_domain.setdefault(d.queue.domain, []).append(d)
    return list(by_domain.values())
