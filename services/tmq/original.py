"""Transactions as on the author's own server (tmq.md 5.7): DNQs alone belong to them, and no answer says no."""

from __future__ import annotations

from functools import partial

from protos import tmq
from protos.tmq import Operation
from services.kit.session import Inflow, Slot
from services.queueing import release_all, settle_all
from services.store import Delivery, Queue, StoreError
from services.tmq.conversation import TmqConversation
from services.tmq.transaction import ABORTED, Transaction

LEASE_BYTES = 512  # of memory for each lease, roughly: the bodies are not kept


class OriginalTransaction:
    """The leases of a transaction's DNQs. Memory alone bounds it: a DNQ beyond a bound would read "empty"."""

    __slots__ = ("leases",)

    def __init__(self) -> None:
        self.leases: list[Delivery] = []

    @property
    def buffered(self) -> int:
        return len(self.leases) * LEASE_BYTES

    def admits(self, _: Queue, operations: int) -> int:
        return operations

    def took(self, _: Queue, got: list[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        self.leases += got
        return got, []

    def count(self, queue: Queue, operations: int) -> None:
        """Count nothing: the number of operations has no bound."""

    def why_not(self, _: Queue) -> str:
        raise AssertionError("an original transaction refuses nothing")


class OriginalTransactions:
    """TS, TE and TA, each answered 0 wherever it stands.

    A TE that cannot settle is not answered: its 0 would be a lie. The connection ends instead.
    """

    __slots__ = ("_conversation", "_inflow", "current", "deadline")

    buffering: Transaction | None = None
    is_expired = False

    def __init__(self, conversation: TmqConversation, inflow: Inflow[tmq.Event]) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self.current: OriginalTransaction | None = None
        self.deadline: float | None = None  # of a TE that waits for the store

    def start(self) -> None:
        """Handle TS. Inside a transaction it changes nothing, so that TA still gives everything back."""
        if self.current is None:
            self.current = OriginalTransaction()
        self._conversation.answer(Operation.TS, True)

    def end(self) -> None:
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
        if (
            not conversation.was_reset
        ):  # also while it closes for another reason: the end waits for what is owed
            conversation.status(slot, Operation.TE, True)
            self._inflow.free()

    def abort(self) -> None:
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
            done(None)  # they go back as soon as the store is there again

    def _aborted(self, slot: Slot, _: StoreError | None) -> None:
        if slot.reply is None:
            self._conversation.status(slot, Operation.TA, True)
            self._inflow.free()

    def on_time(self, now: float) -> None:
        """Close a connection whose TE has waited too long; its messages are settled once the store is back (7.2)."""
        if self.deadline is not None and now >= self.deadline:
            self.deadline = None
            self._conversation.close_unanswered("outcome_unknown", "TE: the store has not answered")

    def drain(self) -> None:
        """Keep the leases: a TE that has come in still settles them, and the end of the connection returns them."""

    def lost(self) -> list[Delivery]:
        transaction, self.current = self.current, None
        return [] if transaction is None else transaction.leases
