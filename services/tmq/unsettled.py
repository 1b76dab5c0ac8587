"""Replies to DNQs outside a transaction, until they are settled: leases that the next request ends (tmq.md 6.1)."""

from __future__ import annotations

from functools import partial

from services.store import OURSELVES, Delivery, Source, StoreError
from services.store.model import MAX_MESSAGES, Done, QueueUnknown, together
from services.tmq.conversation import TmqConversation
from services.tmq.service import TmqService


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
        settle_all(self._talk.service, self.take_all(), partial(reset_if_lost, self._talk))


def settle_all(service: TmqService, deliveries: list[Delivery], done: Done) -> None:
    """Settle deliveries of any queues. done: called once, with the first error or None."""
    parts = [
        domain[start : start + MAX_MESSAGES]
        for domain in _by_domain(deliveries)
        for start in range(0, len(domain), MAX_MESSAGES)
    ]
    each = together(done, len(parts))
    for part in parts:
        service.pipe(part[0].queue).messages.settle(Source(OURSELVES), part, each)


def release_all(service: TmqService, deliveries: list[Delivery], error: str, done: Done) -> None:
    """Return failed deliveries of any queues to their places. done: called once, with the first error or None."""
    parts = _by_domain(deliveries)
    each = together(done, len(parts))
    for part in parts:
        service.pipe(part[0].queue).messages.release(
            Source(OURSELVES), part, failed=True, error=error, done=each
        )


def reset_if_lost(talk: TmqConversation, error: StoreError | None) -> None:
    """Reset the connection if a settling failed.

    A client must not go on as if a message had been its own that others are given too (6.1).
    """
    if error is None or talk.gone or talk.was_reset or isinstance(error, QueueUnknown):
        return  # with its queue a message is gone for everybody
    talk.wire.refuse(error.reason, str(error))
    talk.closing = talk.was_reset = True
    talk.wire.abort()


def _by_domain(deliveries: list[Delivery]) -> list[list[Delivery]]:
    by_domain: dict[str, list[Delivery]] = {}
    for d in deliveries:
        by_domain.setdefault(d.queue.domain, []).append(d)
    return list(by_domain.values())
