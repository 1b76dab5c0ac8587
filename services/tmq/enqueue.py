"""Handle ENQ: put messages into the store or the connection's transaction."""

from __future__ import annotations

from functools import partial

from protos import tmq
from protos.tmq import Dialect, Operation
from services.kit.session import Inflow, Slot
from services.store import StoreError
from services.store.model import OutcomeUnknown, Refusals
from services.tmq.conversation import TmqConversation
from services.tmq.queues import Handles
from services.tmq.transaction_interface import Transactions

STATUS = {  # replies to ENQ: success, failure
    dialect: (
        tmq.encode_status(dialect, Operation.ENQ, True),
        tmq.encode_status(dialect, Operation.ENQ, False),
    )
    for dialect in Dialect
}
ENQ = Operation.ENQ.value


class Enqueues:
    """One connection's ENQs. Runs may overlap, as they go to the store in order (7.2)."""

    __slots__ = ("_conversation", "_handles", "_inflow", "_status", "_transactions")

    def __init__(
        self,
        conversation: TmqConversation,
        inflow: Inflow[tmq.Event],
        handles: Handles,
        transactions: Transactions,
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._handles = handles
        self._transactions = transactions
        self._status = STATUS[conversation.dialect]  # looked up once: an enum's hash is slow

    def enqueue(self, event: tmq.Enqueue) -> None:
        """Put a run of messages."""
        handle = self._handles.get(event.mqid)
        run = event.records
        conversation = self._conversation
        slot = conversation.expect()
        if handle is None:
            conversation.wire.refuse("mqid_not_open")
            self._answer(slot, 0, len(run))
        elif (transaction := self._transactions.buffering) is not None:
            fits = transaction.put(handle.queue, run)
            if fits < len(run):
                conversation.wire.refuse(transaction.why_not(handle.queue))
            self._answer(slot, fits, len(run))
        else:
            pipe = handle.pipe
            pipe.messages.publish(
                conversation.source,
                handle.queue,
                run,
                conversation.origin,
                partial(self._enqueued, slot, run),
            )
            if pipe.waiting.congested:
                self._inflow.hold_until_clear(pipe.waiting.when_clear)  # 7.2

    def _enqueued(self, slot: Slot, run: list[bytes], outcome: Refusals | StoreError) -> None:
        if not outcome:
            self._answer(slot, len(run), len(run))
        elif isinstance(outcome, OutcomeUnknown):
            self._conversation.unknown(outcome)
        elif isinstance(outcome, StoreError):
            self._conversation.wire.refuse(outcome.reason, str(outcome))
            self._answer(slot, 0, len(run))
        else:
            self._partly_refused(slot, len(run), outcome)
        self._inflow.run_answered()

    def _answer(self, slot: Slot, good: int, total: int) -> None:
        """Reply success to the first `good` ENQs of a run, failure to the rest."""
        ok, failed = self._status
        self._conversation.reply(slot, ok * good + failed * (total - good), ENQ, good, total)

    def _partly_refused(self, slot: Slot, total: int, refusals: Refusals) -> None:
        _, why = refusals[0]
        self._conversation.wire.refuse(why.reason, str(why))
        ok, failed = self._status
        bad = {index for index, _ in refusals}
        reply = b"".join(failed if index in bad else ok for index in range(total))
        self._conversation.reply(slot, reply, ENQ, total - len(bad), total)
