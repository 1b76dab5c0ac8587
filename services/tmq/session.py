"""One TMQ connection as the kit sees it: events of the protocol go to the parts that handle them."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from protos import tmq
from protos.tmq import Dialect
from services.kit.session import Inflow, Wire
from services.queueing import QueueSession, Unsettled
from services.tmq.conversation import TmqConversation
from services.tmq.dequeue import Dequeues
from services.tmq.enqueue import Enqueues
from services.tmq.original import OriginalTransactions
from services.tmq.queues import Queues
from services.tmq.service import TmqService
from services.tmq.settings import TransactionKind
from services.tmq.transaction import AtomicTransactions
from services.tmq.transactions import Transactions

RUN_PART = 32  # this many requests of a run are as much work as one request alone
NOT_OF_THE_PIPE = frozenset((tmq.Create, tmq.Delete, tmq.Open))  # these go another way to the store than ENQs
TRANSACTIONS: dict[TransactionKind, Callable[[TmqConversation, Inflow[tmq.Event]], Transactions]] = {
    TransactionKind.ATOMIC: AtomicTransactions,
    TransactionKind.ORIGINAL: OriginalTransactions,
}


class TmqSession(QueueSession[tmq.Event, TmqConversation]):
    """The kit's `Session`, and the `Handler` of its own input. The parts share a conversation and no private state."""

    __slots__ = ("_dequeues", "_enqueues", "_queues", "_transactions")

    def __init__(
        self, wire: Wire, service: TmqService, dialect: Dialect, kind: TransactionKind, limits: tmq.Limits
    ) -> None:
        conversation = TmqConversation(wire, service, dialect)
        inflow = Inflow(conversation, tmq.Connection(dialect, limits), self)
        settings = service.settings
        unsettled = Unsettled(conversation, service, settings.max_unsettled)
        super().__init__(
            conversation, service, inflow, unsettled, settings.eof_grace_s, settings.request_timeout_s
        )
        self._queues = Queues(conversation, inflow)
        self._transactions = TRANSACTIONS[kind](conversation, inflow)
        handles = self._queues.handles
        self._enqueues = Enqueues(conversation, inflow, handles, self._transactions)
        self._dequeues = Dequeues(conversation, inflow, handles, self._transactions, unsettled)

    # what the kit tells, where a transaction has a part in it

    @property
    def buffered(self) -> int:
        """Unfinished input, and what the transaction keeps of it (5.2)."""
        transaction = self._transactions.current
        return self._inflow.buffered + (transaction.buffered if transaction is not None else 0)

    def resumed(self, now: float) -> None:
        self._inflow.restart_clock(now)
        self._dequeues.rest.go_on()
        self._inflow.proceed()

    def deadline(self) -> float | None:
        due = super().deadline()  # a lone 5's TS comes after what is under way (1.2, 3.1)
        limit = self._transactions.deadline
        if limit is None or self.is_lingering:
            return due
        return limit if due is None else min(due, limit)

    def on_time(self, now: float) -> None:
        if not self.is_lingering:
            self._transactions.on_time(now)
        super().on_time(now)

    def drain(self) -> None:
        self._conversation.drained = True
        self._transactions.drain()
        self.end_if_done()  # or later: what has come in is answered, then it is closed

    def lost(self, reset: bool) -> None:
        self.give_up(self._unsettled.take_all() + self._transactions.lost())

    # what the input tells

    def handle(self, event: tmq.Event) -> None:
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
        """How much of a turn it takes (7.3)."""
        if isinstance(event, tmq.Enqueue):
            return 1 + len(event.records) // RUN_PART
        if isinstance(event, tmq.Dequeue | tmq.Select):
            return 1 + event.count // RUN_PART
        return 1

    def is_exclusive(self, event: tmq.Event) -> bool:
        """ENQs alone may overlap; work on whole queues waits for those before it (1.2)."""
        return type(event) in NOT_OF_THE_PIPE
