"""Messages delivered to a client and not settled yet; its next request settles them (tmq.md 6.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from services.kit.session import Slot
from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService
from services.store import INTERNAL_CLIENT, Delivery, Source, StoreError
from services.store.model import MAX_MESSAGES, Done, join_done


class Unsettled:
    """A connection's unsettled messages. `deliveries` is empty most of the time."""

    __slots__ = ("_brought", "_conversation", "_count", "_most", "_service", "_settled", "deliveries")

    def __init__(
        self,
        conversation: QueueConversation,
        service: QueueService,
        most: int,
        settled: Callable[[], None],
    ) -> None:
        """Allow at most `most` unsettled messages. settled: called each time the store has settled some."""
        self._conversation = conversation
        self._settled = settled
        self._service = service
        self._most = most
        self._count = 0  # messages
        self.deliveries: list[Delivery] = []
        self._brought: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return self._count > 0

    def admits(self, count: int) -> int:
        """Return how many of `count` requests may be given a message."""
        return min(count, self._most - self._count)

    def add(self, got: list[Delivery]) -> None:
        """Add deliveries that were sent to the client."""
        self.deliveries += got
        self._count += sum(d.count for d in got)

    def add_brought(self, settle: Callable[[], None]) -> None:
        """Add a message of another system, with the callback that settles it; unsettled, it returns by itself."""
        self._brought.append(settle)
        self._count += 1

    def take_all(self) -> list[Delivery]:
        """Take out the deliveries, for the caller to settle or to return."""
        taken, self.deliveries, self._brought, self._count = self.deliveries, [], [], 0
        return taken

    def settle(self) -> None:
        """Settle all messages with the next call to the store.

        Replies to later requests wait for it: if a lease was lost, the connection is reset instead (tmq.md 6.1).
        """
        brought = self._brought
        if deliveries := self.take_all():
            done = partial(self._done, self._conversation.expect_settlement())
            settle_all(self._service, deliveries, done)
        for settle in brought:
            settle()

    def _done(self, slot: Slot, error: StoreError | None) -> None:
        conversation = self._conversation
        conversation.reset_if_lost(error)
        if not conversation.was_reset:
            conversation.settled(slot)
            self._settled()


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
