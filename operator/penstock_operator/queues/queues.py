"""Reconcile a Queue resource with the queue in the store.

No state of the store is kept between two passes, so that the next one corrects any change made meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from penstock_operator.cluster.resources import Key
from penstock_operator.documents.conditions import NOTHING, Ready, Reason, Verdict
from penstock_operator.documents.declared import DeclaredQueue, owner_of, owning_key
from penstock_operator.documents.refusals import refused
from penstock_operator.queues.conflicts import Claimants, wants
from services.store import Queue, QueueSpec, Store
from services.store.model import (
    INBOX,
    OUTBOX,
    NumberTaken,
    Protocol,
    QueueUnknown,
    Remote,
    StoreError,
    number_name,
    split_claim,
)


class Queues:
    """The reconciler for Queues.

    lacking: returns what is wrong with the peers of a Remote, None if that is not known yet. watches: whether a
    namespace is watched. again: called with the key of a Queue whose number or target has become free.
    """

    def __init__(
        self,
        store: Store,
        claimants: Claimants,
        lacking: Callable[[Remote], str | None],
        watches: Callable[[str], bool],
        again: Callable[[Key], None],
    ) -> None:
        self._store = store
        self._claimants = claimants
        self._lacking = lacking
        self._watches = watches
        self._again = again
        self._waiting: dict[Key, set[str]] = {}  # numbers and targets that were refused to it

    async def reconcile(self, declared: DeclaredQueue) -> Verdict | None:
        """Declare the queue in the store unless another resource has it; return the verdict.

        Returns None if the resource has changed meanwhile or its peers are not known yet: it is queued again then.
        """
        if declared.spec is None:
            return await self._counted(declared, Verdict(Ready.NO, Reason.INVALID, declared.fault))
        try:
            verdict = await self._reconcile(declared, declared.spec)
        except StoreError as error:
            verdict = refused(error)
        return verdict if verdict is None or verdict.counts else await self._counted(declared, verdict)

    async def _counted(self, declared: DeclaredQueue, verdict: Verdict) -> Verdict:
        """Add the queue's counts to the verdict, if it has a queue and the store is available."""
        try:
            found = await self._find(declared.name)
            if found is None or found.owner != owner_of(declared.resource.key):
                return replace(verdict, counts=NOTHING)
            return replace(verdict, counts=_counts(found, await self._store.listing.stats(found)))
        except StoreError:
            return verdict

    async def _reconcile(self, declared: DeclaredQueue, spec: QueueSpec) -> Verdict | None:
        found = await self._find(declared.name)
        if self._claimants.get(declared.resource.key) is not declared:
            return None
        if lost := self._claimants.lost(declared):
            await self._release(declared, found, keeps=())
            return Verdict(Ready.NO, Reason.CONFLICT, _lost(declared, lost))
        if stranger := self._foreign_owner(declared, found):
            return Verdict(Ready.NO, Reason.CONFLICT, stranger)
        spec = await self._store.catalogue.settled(spec, found)
        if found is None or found.spec != spec or found.owner != owner_of(declared.resource.key):
            await self._declare(declared, found, spec)
            found = await self._store.catalogue.find(declared.name)
        return self._verdict(found, spec, await self._store.listing.stats(found))

    async def _declare(self, declared: DeclaredQueue, found: Queue | None, spec: QueueSpec) -> None:
        """Declare the queue, or release its old numbers if a new one is taken: Queues may swap. Raises StoreError."""
        key = declared.resource.key
        had = set() if found is None else set(found.spec.claims())
        # a number may become free during the call
        self._waiting[key] = {split_claim(claim)[0] for claim in spec.claims()}
        try:
            await self._store.catalogue.declare(declared.name, spec, owner_of(key), replace=True)
        except NumberTaken:
            await self._release(declared, found, keeps=spec.numbers())
            raise
        self._waiting.pop(key, None)
        self._wake(had.difference(spec.claims()))

    async def _find(self, name: str) -> Queue | None:
        try:
            return await self._store.catalogue.find(name)
        except QueueUnknown:
            return None

    def _foreign_owner(self, declared: DeclaredQueue, found: Queue | None) -> str:
        """Return the conflict if the queue belongs to a resource that is not watched, else ''."""
        owner = "" if found is None else found.owner
        key = owning_key(owner)
        if key is None or owner == owner_of(declared.resource.key) or self._watches(key[0]):
            return ""
        return (
            f"queue {declared.name!r} belongs to Queue {key[1]!r} in namespace {key[0]!r}, which another operator "
            "manages: choose another queueName or delete that Queue; if that operator no longer exists, run "
            f"penstock queue release {declared.name}"
        )

    async def _release(self, declared: DeclaredQueue, found: Queue | None, keeps: Iterable[str]) -> None:
        """Release the queue's numbers except `keeps`. The messages stay and are reached by the queue's name."""
        if found is None or found.owner != owner_of(declared.resource.key):
            return
        if freed := set(found.spec.numbers()).difference(keeps):
            await self._store.catalogue.declare(
                found.name, _without(freed, found.spec), found.owner, replace=True
            )
            self._wake(freed)

    def _wake(self, freed: set[str]) -> None:
        """Queue the Queues that wait for one of these claims."""
        free = {split_claim(claim)[0] for claim in freed}
        for key in [key for key, claims in self._waiting.items() if claims & free]:
            del self._waiting[key]
            self._again(key)

    def _verdict(self, queue: Queue, spec: QueueSpec, stats: dict[str, Any]) -> Verdict | None:
        counts = _counts(queue, stats)
        if queue.unkept:
            text = f"the store no longer supports ackLevel {queue.spec.ack_level}: check its persistence settings"
            return Verdict(Ready.NO, Reason.ACK_LEVEL_REFUSED, text, counts)
        unfit = self._lacking(spec.remote) if spec.remote is not None and spec.remote.peers else ""
        if unfit is None:
            return None
        if unfit:
            return Verdict(Ready.NO, Reason.UNKNOWN_PEER, unfit, counts)
        if spec.paused:
            return Verdict(Ready.YES, Reason.PAUSED, "paused: puts and deliveries are stopped", counts)
        return Verdict(Ready.YES, Reason.DECLARED, stats["condition"] or "declared in the store", counts)


def _counts(queue: Queue, stats: dict[str, Any]) -> dict[str, Any]:
    return {
        "ackLevel": queue.spec.ack_level,
        "depth": stats["ready"] + stats["in_flight"],
        "inFlight": stats["in_flight"],
        "dead": stats["dead_letters"],
    }


def _lost(declared: DeclaredQueue, lost: dict[str, Key]) -> str:
    name = wants(declared)[0]
    if name in lost:
        by = lost[name]
        return (
            f"queue {declared.name!r} belongs to the older Queue {by.name!r} in namespace {by.namespace!r}: "
            "choose another queueName or delete one of them"
        )
    taken = ", ".join(f"{claim} (Queue {by.namespace}/{by.name})" for claim, by in sorted(lost.items()))
    return f"taken by an older Queue: {taken}; choose other numbers or delete one of them"


def _without(numbers: set[str], spec: QueueSpec) -> QueueSpec:
    """Return the spec without these numbers."""

    def left(protocol: str, number: int | None) -> int | None:
        return None if number is None or number_name(protocol, number) in numbers else number

    mca, cast, ring = spec.bindings.rqp_mca, spec.bindings.rqp_cast, spec.bindings.ring
    bare = spec.bindings.model_copy(
        update={
            "rqp_mca": mca.model_copy(update={"queue_id": left(Protocol.MCA, mca.queue_id)}),
            "rqp_cast": cast.model_copy(update={"key": left(Protocol.CAST, cast.key)}),
            "ring": ring.model_copy(
                update={"inbox": left(INBOX, ring.inbox), "outbox": left(OUTBOX, ring.outbox)}
            ),
        }
    )
    return spec.model_copy(update={"bindings": bare})
