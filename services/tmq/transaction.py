"""Atomic transactions (tmq.md 5.1-5.6): what one will put and what it has taken, and the TS, TE, TA around it."""

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
# A consumer that aborts counts as a failed delivery: else one poisonous message would go round for ever.
ABORTED = "the consumer aborted its transaction"


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
        self.buffered = 0  # octets of what ENQs put: the deliveries' bodies are not kept
        self._parts: dict[str, CommitPart] = {}

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
            self.buffered += len(record)
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

    def _part(self, queue: Queue) -> CommitPart:
        # by id, not by name: a handle of a deleted queue is not the new one's (tmq.md 5.6)
        return self._parts.setdefault(queue.qid, CommitPart(queue, [], [], self._origin))

    def parts(self) -> list[CommitPart]:
        return list(self._parts.values())

    def leased(self) -> list[Delivery]:
        return [d for part in self._parts.values() for d in part.deliveries]

    def expire(self) -> list[Delivery]:
        """The time limit is over (5.4): answers what must go back; every further operation fails."""
        leased = self.leased()
        self.expired, self.deadline, self.buffered = True, None, 0
        self._parts.clear()
        return leased


class AtomicTransactions:
    """TS, TE and TA of one connection, and the time limit: one transaction at a time (5.1)."""

    __slots__ = ("_conversation", "_inflow", "current")

    def __init__(self, conversation: TmqConversation, inflow: Inflow[tmq.Event]) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self.current: Transaction | None = None

    @property
    def buffering(self) -> Transaction | None:
        return self.current

    @property
    def deadline(self) -> float | None:
        return None if self.current is None else self.current.deadline

    # TS, TE, TA

    def start(self) -> None:
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
            conversation.unknown(
                error
            )  # the store gives the leases back if it turns out that nothing was done
            return
        if error is not None:
            conversation.wire.refuse(error.reason, str(error))
            conversation.service.give_back(
                transaction.leased(), failed=False
            )  # TE = 1 has the effect of TA (5.3)
        conversation.status(slot, Operation.TE, error is None)
        self._inflow.free()

    def abort(self) -> None:
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
            done(None)  # they go back as soon as the store is there again

    def _aborted(self, slot: Slot, _: StoreError | None) -> None:
        if slot.reply is None:
            self._conversation.status(slot, Operation.TA, True)
            self._inflow.free()

    # what ends it otherwise (5.4)

    @property
    def is_expired(self) -> bool:
        return self.current is not None and self.current.expired

    def on_time(self, now: float) -> None:
        if self.current is not None and (limit := self.current.deadline) is not None and now >= limit:
            self._conversation.wire.refuse("transaction_time_limit")
            error = "the transaction's time limit was over"
            self._conversation.service.give_back(self.current.expire(), failed=True, error=error)

    def drain(self) -> None:
        """What it holds goes back; that is not the consumer's failure."""
        if self.current is not None:
            self._conversation.service.give_back(self.current.expire(), failed=False)

    def lost(self) -> list[Delivery]:
        """The connection has gone, and the transaction with it: answers what must go back."""
        transaction, self.current = self.current, None
        return [] if transaction is None else transaction.expire()
