"""Handle atomic transactions: TS, TE, TA, and the operations in between (tmq.md 5.1-5.6)."""

from __future__ import annotations

import secrets
from functools import partial

from protos import tmq
from protos.tmq import Operation
from services.kit.session import Inflow, Slot
from services.store import CommitPart, Delivery, Queue, StoreError
from services.store.model import DomainMismatch, OutcomeUnknown
from services.tmq.conversation import TmqConversation
from services.tmq.settings import TransactionSettings

HEAD_BYTES = 4  # of a record: its length
# An abort counts as a failed delivery; otherwise a poison message would be redelivered for ever.
ABORTED = "the consumer aborted its transaction"


class Transaction:
    """A transaction's ENQs and leases of DNQs, within the limits of 5.2 and in one domain (5.5)."""

    def __init__(self, settings: TransactionSettings, now: float, origin: str) -> None:
        self.identifier = secrets.token_hex(16)
        self.deadline: float | None = now + settings.time_limit_s
        self.expired = False
        self._settings = settings
        self._origin = origin
        self._domain: str | None = None
        self._operations = 0
        self._bytes = 0
        self.buffered = 0  # octets of ENQs; bodies of deliveries are not kept
        self._parts: dict[str, CommitPart] = {}

    def admits(self, queue: Queue, operations: int) -> int:
        """Return how many of these operations are within the limits; 0 in another domain."""
        if self.expired or self._is_elsewhere(queue):
            return 0
        return min(operations, self._settings.max_operations - self._operations)

    def put(self, queue: Queue, records: list[bytes]) -> int:
        """Buffer as many records as the limits allow, and return their number."""
        fits = 0
        for record in records[: self.admits(queue, len(records))]:
            body_bytes = len(record) - HEAD_BYTES
            if self._bytes + body_bytes > self._settings.max_bytes:
                break
            self._bytes += body_bytes
            self.buffered += len(record)
            fits += 1
        if fits:
            self.count(queue, fits)
            self._part(queue).records.extend(records[:fits])
        return fits

    def took(self, queue: Queue, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        """Keep leases up to the limit of octets. Return those, and those that must go back."""
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
        """Return the reason of a refusal."""
        if self.expired:
            return "transaction_expired"
        return DomainMismatch.reason if self._is_elsewhere(queue) else "transaction_limit"

    def count(self, queue: Queue, operations: int) -> None:
        """Count operations; a DNQ that found nothing is one too."""
        if operations:
            self._domain = queue.domain
            self._operations += operations

    def _is_elsewhere(self, queue: Queue) -> bool:
        return self._domain is not None and self._domain != queue.domain

    def _part(self, queue: Queue) -> CommitPart:
        # by id, not by name: a handle of a deleted queue is not the new one's (tmq.md 5.6)
        return self._parts.setdefault(queue.qid, CommitPart(queue, [], [], self._origin))

    def parts(self) -> list[CommitPart]:
        """Return what to commit, by queue."""
        return list(self._parts.values())

    def leased(self) -> list[Delivery]:
        """Return all leases."""
        return [d for part in self._parts.values() for d in part.deliveries]

    def expire(self) -> list[Delivery]:
        """Expire (5.4): further operations fail. Return the leases, which must go back."""
        leased = self.leased()
        self.expired, self.deadline, self.buffered = True, None, 0
        self._parts.clear()
        return leased


class AtomicTransactions:
    """TS, TE and TA of one connection, with one transaction at a time (5.1)."""

    __slots__ = ("_conversation", "_inflow", "current")

    def __init__(self, conversation: TmqConversation, inflow: Inflow[tmq.Event]) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self.current: Transaction | None = None

    @property
    def buffering(self) -> Transaction | None:
        """Return the open transaction."""
        return self.current

    @property
    def deadline(self) -> float | None:
        """Return the transaction's time limit, in loop time."""
        return None if self.current is None else self.current.deadline

    # TS, TE, TA

    def start(self) -> None:
        """Handle TS."""
        conversation = self._conversation
        free = self.current is None and not conversation.drained
        if free:
            now = conversation.wire.loop_time()
            self.current = Transaction(conversation.service.settings.transaction, now, conversation.origin)
            conversation.wire.reschedule()
        else:
            conversation.wire.refuse("draining" if conversation.drained else "in_transaction")
        conversation.answer(Operation.TS, free)

    def end(self) -> None:
        """Handle TE: commit."""
        conversation = self._conversation
        transaction, self.current = self.current, None
        if transaction is None or transaction.expired:
            conversation.wire.refuse("no_transaction" if transaction is None else "transaction_expired")
            conversation.answer(Operation.TE, False)
            return
        parts = transaction.parts()
        if not parts:
            conversation.answer(Operation.TE, True)
            return
        slot = conversation.expect()
        self._inflow.hold()
        done = partial(self._ended, slot, transaction)
        conversation.service.pipe(parts[0].queue).idempotent.commit(
            conversation.source, transaction.identifier, parts, done
        )

    def _ended(self, slot: Slot, transaction: Transaction, error: StoreError | None) -> None:
        conversation = self._conversation
        if isinstance(error, OutcomeUnknown):
            conversation.unknown(error)  # the store returns the leases if nothing was committed
            return
        if error is not None:
            conversation.wire.refuse(error.reason, str(error))
            conversation.service.give_back(transaction.leased(), failed=False)  # a failed TE acts as TA (5.3)
        conversation.status(slot, Operation.TE, error is None)
        self._inflow.free()

    def abort(self) -> None:
        """Handle TA: drop ENQs, return messages to their queues."""
        conversation = self._conversation
        transaction, self.current = self.current, None
        if transaction is None:
            conversation.wire.refuse("no_transaction")
        leased = transaction.leased() if transaction is not None else []
        if not leased:
            conversation.answer(Operation.TA, transaction is not None)
            return
        slot = conversation.expect()
        self._inflow.hold()
        pipe = conversation.service.pipe(leased[0].queue)
        done = partial(self._aborted, slot)
        pipe.messages.release(conversation.source, leased, failed=True, error=ABORTED, done=done)
        if pipe.trouble is not None:
            done(None)  # the messages are returned once the store is available

    def _aborted(self, slot: Slot, _: StoreError | None) -> None:
        if slot.reply is None:
            self._conversation.status(slot, Operation.TA, True)
            self._inflow.free()

    # Other ends of a transaction (5.4)

    @property
    def is_expired(self) -> bool:
        """Return True while every operation up to TE or TA fails."""
        return self.current is not None and self.current.expired

    def on_time(self, now: float) -> None:
        """Expire the transaction if its time limit has passed."""
        if self.current is not None and (limit := self.current.deadline) is not None and now >= limit:
            self._conversation.wire.refuse("transaction_time_limit")
            error = "the transaction exceeded its time limit"
            self._conversation.service.give_back(self.current.expire(), failed=True, error=error)

    def drain(self) -> None:
        """Expire the transaction and return its messages, without counting a failed delivery."""
        if self.current is not None:
            self._conversation.service.give_back(self.current.expire(), failed=False)

    def lost(self) -> list[Delivery]:
        """End the transaction of a lost connection. Return the leases that must go back."""
        transaction, self.current = self.current, None
        return [] if transaction is None else transaction.expire()
