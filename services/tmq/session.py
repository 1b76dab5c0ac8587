"""Dispatch the requests of one TMQ connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from protos import tmq
from protos.tmq import Dialect
from services.kit.session import Inflow, Wire
from services.queueing import QueueSession, Unsettled
from services.tmq.atomic_transactions import AtomicTransactions
from services.tmq.conversation import TmqConversation
from services.tmq.dequeue import Dequeues
from services.tmq.enqueue import Enqueues
from services.tmq.original_transactions import OriginalTransactions
from services.tmq.queues import Queues
from services.tmq.service import TmqService
from services.tmq.settings import TransactionKind
from services.tmq.transaction_interface import Transactions

RUN_PART = 32  # this many requests of a run count as one request
# these are not ordered with ENQs by the store
NOT_OF_THE_PIPE = frozenset((tmq.Create, tmq.Delete, tmq.Open))
TRANSACTIONS: dict[TransactionKind, Callable[[TmqConversation, Inflow[tmq.Event]], Transactions]] = {
    TransactionKind.ATOMIC: AtomicTransactions,
    TransactionKind.ORIGINAL: OriginalTransactions,
}


class TmqSession(QueueSession[tmq.Event, TmqConversation]):
    """The `Session` of a connection, and the `Handler` of its requests."""

    __slots__ = ("_dequeues", "_enqueues", "_queues", "_transactions")

    def __init__(
        self, wire: Wire, service: TmqService, dialect: Dialect, kind: TransactionKind, limits: tmq.Limits
    ) -> None:
        conversation = TmqConversation(wire, service, dialect)
        inflow = Inflow(conversation, tmq.Connection(dialect, limits), self)
        settings = service.settings
        unsettled = Unsettled(conversation, service, settings.max_unsettled, inflow.run_answered)
        super().__init__(
            conversation, service, inflow, unsettled, settings.eof_grace_s, settings.request_timeout_s
        )
        self._queues = Queues(conversation, inflow)
        self._transactions = TRANSACTIONS[kind](conversation, inflow)
        handles = self._queues.handles
        self._enqueues = Enqueues(conversation, inflow, handles, self._transactions)
        self._dequeues = Dequeues(conversation, inflow, handles, self._transactions, unsettled)

    # Methods of `Session` that concern transactions

    @property
    def buffered(self) -> int:
        """Return the bytes of unfinished input and of the open transaction (5.2)."""
        transaction = self._transactions.current
        return self._inflow.buffered + (transaction.buffered if transaction is not None else 0)

    def resumed(self, now: float) -> None:
        """Continue a run of DNQs, and the input."""
        self._inflow.restart_clock(now)
        self._dequeues.rest.go_on()
        self._inflow.proceed()

    def deadline(self) -> float | None:
        """Return the earliest deadline, of the input or of the transaction."""
        due = super().deadline()
        limit = self._transactions.deadline
        if limit is None or self.is_lingering:
            return due
        return limit if due is None else min(due, limit)

    def on_time(self, now: float) -> None:
        """Handle deadlines of the transaction and of the input."""
        if not self.is_lingering:
            self._transactions.on_time(now)
        super().on_time(now)

    def drain(self) -> None:
        """End the transaction, answer the requests received so far, and close."""
        self._conversation.drained = True
        self._transactions.drain()
        self.end_if_done()

    def lost(self, reset: bool) -> None:
        """Return unsettled messages and those of the transaction."""
        self.give_up(self._unsettled.take_all() + self._transactions.lost())

    # Methods of `Handler`

    def handle(self, event: tmq.Event) -> None:
        """Handle a request, or a run of requests."""
        if self._unsettled.deliveries and not isinstance(event, tmq.Refused):
            self._unsettled.settle()  # the next complete valid request settles all earlier replies (6.1)
        match event:
            case tmq.Enqueue():
                self._enqueues.enqueue(event)
            case tmq.Dequeue():
                self._dequeues.dequeue(event)
            case tmq.Select():
                self._queues.select(event, expired=self._transactions.is_expired)
            case tmq.Open():
                self._queues.open(event)
            case tmq.Close():
                self._queues.close(event)
            case tmq.Create():
                self._queues.create(event)
            case tmq.Delete():
                self._queues.delete(event)
            case tmq.TransactionStart():
                self._transactions.start()
            case tmq.TransactionEnd():
                self._transactions.end()
            case tmq.TransactionAbort():
                self._transactions.abort()
            case tmq.Refused():
                self._conversation.refuse(event)
            case _:
                assert_never(event)

    def work(self, event: tmq.Event) -> int:
        """Return the share of a turn that a request takes (7.3)."""
        if isinstance(event, tmq.Enqueue):
            return 1 + len(event.records) // RUN_PART
        if isinstance(event, tmq.Dequeue | tmq.Select):
            return 1 + event.count // RUN_PART
        return 1

    def is_exclusive(self, event: tmq.Event) -> bool:
        """Return whether a request must wait for earlier ENQs, as those on whole queues must (1.2)."""
        return type(event) in NOT_OF_THE_PIPE
