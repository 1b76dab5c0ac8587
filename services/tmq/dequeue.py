"""Handle DNQ: take messages for the connection's transaction, or as unsettled replies (6.1)."""

from __future__ import annotations

from functools import partial

from protos import tmq
from protos.tmq import Operation
from services.kit.session import Inflow, Slot
from services.queueing import Rest, Unsettled
from services.store import Delivery, Queue, StoreError
from services.store.model import OutcomeUnknown, records
from services.tmq.conversation import TmqConversation
from services.tmq.queues import Handles
from services.tmq.transaction_interface import Transactions

DNQ = Operation.DNQ.value  # looked up once: an enum's value is slow


class DequeueRun:
    """DNQs that are answered together."""

    __slots__ = ("allowed", "asked", "queue", "slot")

    def __init__(self, slot: Slot, queue: Queue, asked: int, allowed: int) -> None:
        self.slot = slot
        self.queue = queue
        self.asked = asked
        self.allowed = allowed  # how many of them may get a message


class Dequeues:
    """One connection's DNQs: one run at a time, in as many takes as needed."""

    __slots__ = ("_conversation", "_handles", "_inflow", "_transactions", "_unsettled", "rest")

    def __init__(
        self,
        conversation: TmqConversation,
        inflow: Inflow[tmq.Event],
        handles: Handles,
        transactions: Transactions,
        unsettled: Unsettled,
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._handles = handles
        self._transactions = transactions
        self._unsettled = unsettled
        self.rest = Rest(conversation, inflow, self._take)  # DNQs that wait for the client to read

    def dequeue(self, event: tmq.Dequeue) -> None:
        """Begin a run of DNQs."""
        handle = self._handles.get(event.mqid)
        slot = self._conversation.expect()
        self._inflow.hold()
        if handle is None:
            self._conversation.wire.refuse("mqid_not_open")
            self._nothing(slot, event.count)
            return
        queue = handle.queue
        run = DequeueRun(slot, queue, event.count, self._may_take(queue, event.count))
        if run.allowed < event.count:
            transaction = self._transactions.current
            self._conversation.wire.refuse(
                transaction.why_not(queue) if transaction else "too_many_unsettled"
            )
        self._take(run)

    def _may_take(self, queue: Queue, count: int) -> int:
        transaction = self._transactions.current
        return self._unsettled.admits(count) if transaction is None else transaction.admits(queue, count)

    def _take(self, run: DequeueRun) -> None:
        """Take messages for the run; reply at once if it may have none."""
        if run.allowed == 0:
            self._nothing(run.slot, run.asked)
        else:
            conversation = self._conversation
            take = conversation.service.pipe(run.queue).messages.take
            # then the messages are leased until it ends (5.4)
            inside = self._transactions.current is not None
            take(conversation.source, run.queue, run.allowed, partial(self._taken, run), leased=inside)

    def _nothing(self, slot: Slot, asked: int) -> None:
        self._conversation.reply(slot, tmq.EMPTY * asked, DNQ, 0, asked)
        self._inflow.free()

    def _taken(self, run: DequeueRun, got: list[Delivery] | StoreError, more: bool) -> None:
        conversation = self._conversation
        if isinstance(got, OutcomeUnknown):
            conversation.unknown(got)
            return
        if isinstance(got, StoreError):
            conversation.wire.refuse(got.reason, str(got))
            got, more = [], False
        kept = self._keep(run.queue, got)
        if conversation.is_lost:
            return  # the messages were returned (6.2)
        count = sum(d.count for d in kept)
        # a call's octets are shared by all requests in it, so this run may have got fewer than it may have
        goes_on = more and len(kept) == len(got) and count < run.allowed
        if (transaction := self._transactions.current) is not None:
            transaction.count(run.queue, count if goes_on or len(kept) < len(got) else run.allowed)
        self._reply(run, kept, count, count if goes_on else run.asked)
        if goes_on:
            self.rest.take(
                DequeueRun(conversation.expect(), run.queue, run.asked - count, run.allowed - count)
            )
        else:
            self._inflow.free()

    def _reply(self, run: DequeueRun, kept: list[Delivery], count: int, answered: int) -> None:
        """Answer `answered` DNQs of the run: the first `count` get the messages, the others none."""
        reply = b"".join(records.plain(d.blob, d.count) for d in kept) + tmq.EMPTY * (answered - count)
        for d in kept:
            d.drop_bodies()  # saves memory: leases may last, and messages may be large
        self._conversation.reply(run.slot, reply, DNQ, count, answered)

    def _keep(self, queue: Queue, got: list[Delivery]) -> list[Delivery]:
        """Keep the leases of the messages that this connection may have; return the rest to the queue."""
        if not got or got[0].settled:
            return got
        transaction = self._transactions.current
        if self._conversation.is_lost:
            kept, beyond = [], got
        elif transaction is None:
            kept, beyond = got, []
            self._unsettled.add(got)
        else:
            kept, beyond = transaction.took(queue, got)
        if beyond:
            self._conversation.service.pipe(queue).messages.give_back(beyond)
            if transaction is not None:
                self._conversation.wire.refuse(transaction.why_not(queue))
        return kept
