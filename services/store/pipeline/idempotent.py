"""The verbs that are done once, also if they are repeated: commits, publishes under an identity, pulls under an id."""

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
    """Of one domain; answered as `Messages` are."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
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
        """Settle and publish over several queues, all or nothing; an identifier is applied once, ever.

        With a digest, an identifier that was applied with another one is answered BatchDiffers.

        Answers LeaseLost, QueueUnknown, QueueFull, QueuePaused or StoreFull when one part cannot be done: then
        nothing was. Raises DomainMismatch for queues of another domain.
        """
        self._commit(source, Commit(identifier, parts, keep_ms, digest, lambda told: done(_error(told))))

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
        """Put one record in under its identity, which says for how long: done(STORED), or AGAIN if it was before.

        Answers BatchDiffers, QueueUnknown, QueueFull, ReservationLost, ...: nothing was stored. holder: as in
        `Messages.publish`, for a `TransactionId`. reason: the record goes to the queue's dead letters instead, with the
        error; for a `JournalNumber`.
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
        """Lease one message: done(Pulled), or Nothing. A repeat of the id gets the same one while it is leased.

        The lease is this process's, and its to release if it is not settled. A message whose body has more octets than
        `largest` stays where it is: MessageTooLarge, and so for a repeat of the id. Nothing.EMPTY is remembered for ten
        minutes at most. Of a queue that delivers at most once it is settled already. BatchDiffers: the id is of a push.
        Raises ValueError for what is no id.
        """
        check_id(request)
        refused = self._gate.refusal(source, [queue])
        if refused is not None:
            done(refused)
            return

        def pulled(told: Pulled | Nothing | StoreError) -> None:
            if told is Nothing.RETRY:
                self.pull(source, request, queue, largest, keep_ms, done)
            elif isinstance(told, Pulled) and queue.at_most_once:
                self._settle_first(request, told, done)
            else:
                done(told)

        operation = Pull(request, keep_ms, queue, largest, pulled)
        if self._traced is not None:
            self._traced.pull(source, operation)
        self._ask(source, operation, largest)  # what it may answer counts as much as what it would bring

    def _settle_first(self, request: bytes, pulled: Pulled, done: Pulls) -> None:
        """Hand the message over once it is settled: at most one of all that pulled it settles it."""

        def settled(told: Settlement | StoreError) -> None:
            if told is Settlement.SETTLED:
                pulled.delivery.settled = True
                done(pulled)
            else:
                done(told if isinstance(told, StoreError) else Nothing.EXPIRED)

        self.settle(Source(INTERNAL_CLIENT), request, pulled.delivery.queue, settled)

    def settle(self, source: Source, request: bytes, queue: Queue, done: Settles) -> None:
        """Settle what the pull of this id leased, whichever process leases it. Raises ValueError for what is no id."""
        check_id(request)
        self._settle(source, request, queue, "", done)

    def _settle(self, source: Source, request: bytes, queue: Queue, session: str, done: Settles) -> None:
        refused = self._gate.refuses()
        if refused is not None:
            self._gate.tallies.of(queue).refuse(refused, 1)
            done(refused)
            return

        def settled(told: Settlement | Held | StoreError) -> None:
            if isinstance(told, Held):
                self._settle(source, request, queue, told.session, done)
            else:
                done(told)

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


def _error(told: Outcome | StoreError) -> StoreError | None:
    return told if isinstance(told, StoreError) else None
