"""Handle transactions as the author's own server does (tmq.md 5.7): only for DNQs, and without failures."""

from __future__ import annotations

from functools import partial

from protos import tmq
from protos.tmq import Operation
from services.kit.session import Inflow, Slot
from services.queueing import release_all, settle_all
from services.store import Delivery, Queue, StoreError
from services.tmq.atomic_transactions import ABORTED, Transaction
from services.tmq.conversation import TmqConversation

LEASE_BYTES = 512  # approximate memory of a lease without its bodies


class OriginalTransaction:
    """The leases of a transaction's DNQs, limited only by memory: at a limit, a DNQ would report an empty queue."""

    __slots__ = ("leases",)

    def __init__(self) -> None:
        self.leases: list[Delivery] = []

    @property
    def buffered(self) -> int:
        """Return the bytes of memory in use."""
        return len(self.leases) * LEASE_BYTES

    def admits(self, _: Queue, operations: int) -> int:
        """Return `operations`: there is no limit."""
        return operations

    def took(self, _: Queue, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        """Keep all leases."""
        self.leases += got
        return got, []

    def count(self, queue: Queue, operations: int) -> None:
        """Do nothing: the number of operations is not limited."""

    def why_not(self, _: Queue) -> str:
        """Raise AssertionError: nothing is refused."""
        raise AssertionError("an original transaction refuses nothing")


class OriginalTransactions:
    """TS, TE and TA of one connection, always answered with 0.

    If a TE cannot settle, the connection closes without a reply, as 0 would be wrong.
    """

    __slots__ = ("_conversation", "_inflow", "current", "deadline")

    buffering: Transaction | None = None
    is_expired = False

    def __init__(self, conversation: TmqConversation, inflow: Inflow[tmq.Event]) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self.current: OriginalTransaction | None = None
        self.deadline: float | None = None  # of a TE that waits for the store, loop time

    def start(self) -> None:
        """Handle TS. Inside a transaction it changes nothing, so that TA still returns everything."""
        if self.current is None:
            self.current = OriginalTransaction()
        self._conversation.answer(Operation.TS, True)

    def end(self) -> None:
        """Handle TE: settle the leases."""
        conversation = self._conversation
        leases = self.lost()
        if not leases:
            conversation.answer(Operation.TE, True)
            return
        slot = conversation.expect()
        self._inflow.hold()
        self.deadline = conversation.wire.loop_time() + conversation.service.settings.request_timeout_s
        settle_all(conversation.service, leases, partial(self._ended, slot))
        conversation.wire.reschedule()

    def _ended(self, slot: Slot, error: StoreError | None) -> None:
        conversation = self._conversation
        self.deadline = None
        conversation.reset_if_lost(error)
        if not conversation.was_reset:  # a connection that closes for another reason waits for this reply
            conversation.status(slot, Operation.TE, True)
            self._inflow.free()

    def abort(self) -> None:
        """Handle TA: return the messages to their queues."""
        conversation = self._conversation
        leases = self.lost()
        if not leases:
            conversation.answer(Operation.TA, True)
            return
        slot = conversation.expect()
        self._inflow.hold()
        done = partial(self._aborted, slot)
        release_all(conversation.service, leases, error=ABORTED, done=done)
        if any(conversation.service.pipe(lease.queue).trouble is not None for lease in leases):
            done(None)  # the messages are returned once the store is available

    def _aborted(self, slot: Slot, _: StoreError | None) -> None:
        if slot.reply is None:
            self._conversation.status(slot, Operation.TA, True)
            self._inflow.free()

    def on_time(self, now: float) -> None:
        """Close a connection whose TE has waited too long; its messages are settled once the store is back (7.2)."""
        if self.deadline is not None and now >= self.deadline:
            self.deadline = None
            self._conversation.close_unanswered("outcome_unknown", "TE: the store did not reply in time")

    def drain(self) -> None:
        """Keep the leases: a TE that was received settles them, the end of the connection returns them."""

    def lost(self) -> list[Delivery]:
        """End the transaction; return its leases."""
        transaction, self.current = self.current, None
        return [] if transaction is None else transaction.leases
