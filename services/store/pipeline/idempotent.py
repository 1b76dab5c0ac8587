"""Idempotent operations: commits, publishes with an idempotency key, and pulls by request id."""

from __future__ import annotations

from services.store.model.client import INTERNAL_CLIENT
from services.store.model.errors import DomainMismatch, StoreError
from services.store.model.identities import Identity, TransactionId, check_id
from services.store.model.operations import Commit, CommitPart, Done, IdempotentPublish, Phase, Source
from services.store.model.queues import Queue
from services.store.model.requests import (
    Held,
    Nothing,
    Once,
    Outcome,
    Pull,
    Pulled,
    Pulls,
    Request,
    Settle,
    Settlement,
    Settles,
)
from services.store.pipeline.gate import Gate
from services.store.pipeline.traced import Traced

KEEP_TRANSACTIONS_MS = 24 * 3600 * 1000  # how long an applied transaction id is remembered


class Idempotent:
    """Idempotent operations of one domain; callbacks work as those of `Messages`."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
        """Trace operations with `traced`, if the process is traced."""
        self._gate = gate
        self._traced = traced

    def commit(
        self,
        source: Source,
        identifier: str,
        parts: list[CommitPart],
        done: Done,
        keep_ms: int = KEEP_TRANSACTIONS_MS,
        digest: str = "",
    ) -> None:
        """Settle and publish in several queues atomically, once per identifier.

        Answers LeaseLost, QueueUnknown, QueueFull, QueuePaused or StoreFull if a part cannot be applied; then none is.

        Args:
            source: The connection that commits.
            identifier: The same for each repeat of this commit.
            parts: One for each queue.
            done: Called with None once it is applied, now or before.
            keep_ms: How long the identifier is remembered.
            digest: Of the contents; an identifier that was applied with another one is answered BatchDiffers.

        Raises:
            DomainMismatch: For queues of another domain.
        """
        self._commit(
            source, Commit(identifier, parts, keep_ms, digest, lambda outcome: done(_error(outcome)))
        )

    def publish(
        self,
        source: Source,
        identity: Identity,
        queue: Queue,
        record: bytes,
        origin: str,
        done: Once,
        *,
        holder: str = "",
        reason: str = "",
        error: str = "",
    ) -> None:
        """Publish one record once per identity: done(STORED), or done(AGAIN) for a repeat.

        Answers BatchDiffers, QueueUnknown, QueueFull, ReservationLost and the like if nothing was stored.

        Args:
            source: The connection that publishes.
            identity: The same for each repeat; says for how long it is remembered.
            queue: Where to.
            record: Encoded by `records.encode`.
            origin: The producer.
            done: Called with the outcome.
            holder: As in `Messages.publish`; only for a `TransactionId`.
            reason: If given, the record becomes a dead letter with `error`; only for a `JournalNumber`.
            error: Text for people.
        """
        if isinstance(identity, TransactionId):
            parts = [CommitPart(queue, [], [record], origin, holder)]
            self._commit(source, Commit(identity.identifier, parts, identity.keep_ms, identity.digest, done))
            return
        operation = IdempotentPublish(identity, queue, record, origin, reason, error, done)
        if self._traced is not None:
            self._traced.once(source, operation)
        refused = self._gate.refusal(source, goals=[(queue, 0 if reason else 1)])
        if refused is not None:
            operation.done(refused)
            return
        self._ask(source, operation, len(operation.record))

    def pull(
        self, source: Source, request: bytes, queue: Queue, largest: int, keep_ms: int, done: Pulls
    ) -> None:
        """Lease one message: done(Pulled), or done(Nothing). A repeat of the id gets the same message while leased.

        This process holds the lease and must release it if the message is not settled. A message with a body of more
        than `largest` octets stays in the queue and is answered MessageTooLarge, also to a repeat of the id.
        Nothing.EMPTY is remembered for ten minutes at most. Messages of an at-most-once queue are already settled.
        Answers BatchDiffers if the id is that of a push. Raises ValueError for an invalid id.
        """
        check_id(request)
        refused = self._gate.refusal(source, [queue])
        if refused is not None:
            done(refused)
            return

        def pulled(answer: Pulled | Nothing | StoreError) -> None:
            if answer is Nothing.RETRY:
                self.pull(source, request, queue, largest, keep_ms, done)
            elif isinstance(answer, Pulled) and queue.at_most_once:
                self._settle_first(request, answer, done)
            else:
                done(answer)

        operation = Pull(request, keep_ms, queue, largest, pulled)
        if self._traced is not None:
            self._traced.pull(source, operation)
        self._ask(source, operation, largest)  # a pulled body counts towards the call's size

    def _settle_first(self, request: bytes, pulled: Pulled, done: Pulls) -> None:
        """Settle the message, then deliver it: of several pulls of it, at most one succeeds in settling."""

        def settled(answer: Settlement | StoreError) -> None:
            if answer is Settlement.SETTLED:
                pulled.delivery.settled = True
                done(pulled)
            else:
                done(answer if isinstance(answer, StoreError) else Nothing.EXPIRED)

        self.settle(Source(INTERNAL_CLIENT), request, pulled.delivery.queue, settled)

    def settle(self, source: Source, request: bytes, queue: Queue, done: Settles) -> None:
        """Settle the message that the pull of this id leased, in any process. Raises ValueError for an invalid id."""
        check_id(request)
        self._settle(source, request, queue, "", done)

    def _settle(self, source: Source, request: bytes, queue: Queue, session: str, done: Settles) -> None:
        refused = self._gate.refuses()
        if refused is not None:
            self._gate.tallies.of(queue).refuse(refused, 1)
            done(refused)
            return

        def settled(answer: Settlement | Held | StoreError) -> None:
            if isinstance(answer, Held):
                self._settle(source, request, queue, answer.session, done)
            else:
                done(answer)

        operation = Settle(request, queue, session, settled)
        if self._traced is not None:
            self._traced.settle(operation)
        self._ask(source, operation, 0)

    def _ask(self, source: Source, operation: IdempotentPublish | Request, size: int) -> None:
        call = self._gate.call_for(1, size, 0)
        call.place(source, Phase.COMMIT).commits.append(operation)
        call.touch(operation.queue)

    def _commit(self, source: Source, commit: Commit) -> None:
        has_traced = self._traced is not None and self._traced.commit(source, commit)
        gate, parts = self._gate, commit.parts
        goals = [(part.queue, len(part.records)) for part in parts if part.records]
        refused = gate.refusal(source, goals=goals)
        if refused is not None:
            commit.done(refused)
            return
        if any(part.queue.domain != gate.keys.domain for part in parts):
            raise DomainMismatch
        size = sum(len(record) for part in parts for record in part.records)
        call = gate.call_for(sum(len(part.records) for part in parts), size, 0, len(parts))
        call.place(source, Phase.COMMIT).commits.append(commit)
        for part in parts:
            call.touch(part.queue)
        if has_traced:
            gate.waiting.packs_traced()


def _error(outcome: Outcome | StoreError) -> StoreError | None:
    return outcome if isinstance(outcome, StoreError) else None
