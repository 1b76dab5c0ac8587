"""One connection's transaction (tmq.md 5): what it will put and what it has taken, until TE or TA."""

from __future__ import annotations

import secrets

from services.store import Delivery, Part, Queue
from services.store.errors import DomainMismatch
from services.tmq.settings import TransactionSettings

HEAD_BYTES = 4  # of a record: its length


class Transaction:
    """Buffers ENQs, keeps the leases of DNQs. Limits as in tmq.md 5.2; one domain as in 5.5."""

    def __init__(self, settings: TransactionSettings, now: float, origin: str) -> None:
        self.identifier = secrets.token_hex(16)
        self.deadline: float | None = now + settings.time_limit_s
        self.expired = False
        self._settings = settings
        self._origin = origin
        self._domain: str | None = None
        self._operations = 0
        self._bytes = 0
        self._parts: dict[str, Part] = {}

    def admits(self, queue: Queue, operations: int) -> int:
        """How many of so many further operations on the queue may be done: fewer at the limit, none elsewhere."""
        if self.expired or self._is_elsewhere(queue):
            return 0
        return min(operations, self._settings.max_operations - self._operations)

    def put(self, queue: Queue, records: list[bytes]) -> int:
        """Buffers as many of the records as the limits let in, and answers how many."""
        fits = 0
        for record in records[: self.admits(queue, len(records))]:
            body_bytes = len(record) - HEAD_BYTES
            if self._bytes + body_bytes > self._settings.max_bytes:
                break
            self._bytes += body_bytes
            fits += 1
        if fits:
            self.count(queue, fits)
            self._part(queue).records.extend(records[:fits])
        return fits

    def took(self, queue: Queue, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        """Keeps what DNQs were given, up to the limit of octets; answers that, and what must go back."""
        kept, beyond = ([], got) if self.expired else self._fitting(got)
        if kept:
            self._bytes += sum(d.body_bytes for d in kept)
            self._part(queue).deliveries.extend(kept)
        return kept, beyond

    def _fitting(self, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        left = self._settings.max_bytes - self._bytes
        for index, d in enumerate(got):
            if d.body_bytes > left:
                head, rest = d.cut(d.fitting(left))
                return [*got[:index], *([head] if head.count else [])], [rest, *got[index + 1 :]]
            left -= d.body_bytes
        return got, []

    def why_not(self, queue: Queue) -> str:
        """The reason of a refusal."""
        if self.expired:
            return "transaction_expired"
        return DomainMismatch.reason if self._is_elsewhere(queue) else "transaction_limit"

    def count(self, queue: Queue, operations: int) -> None:
        """So many operations were done; a DNQ that found nothing is one too."""
        if operations:
            self._domain = queue.domain
            self._operations += operations

    def _is_elsewhere(self, queue: Queue) -> bool:
        return self._domain is not None and self._domain != queue.domain

    def _part(self, queue: Queue) -> Part:
        # by id, not by name: a handle of a deleted queue is not the new one's (tmq.md 5.6)
        return self._parts.setdefault(queue.qid, Part(queue, [], [], self._origin))

    def parts(self) -> list[Part]:
        return list(self._parts.values())

    def leased(self) -> list[Delivery]:
        return [d for part in self._parts.values() for d in part.deliveries]

    def expire(self) -> list[Delivery]:
        """The time limit is over (5.4): answers what must go back; every further operation fails."""
        leased = self.leased()
        self.expired, self.deadline = True, None
        self._parts.clear()
        return leased
