"""A Queue resource and the queue of that name in the store: what is different there is put right.

Nothing is remembered between two looks: whatever happened to the store meanwhile, the next look finds it.
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
    """`lacking` answers what is wrong with the peers that are named there, None while that is not known yet.

    `watches` answers whether we see a namespace's resources.

    `again` is called with the key of a Queue for which something has become free.
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
        self._waiting: dict[Key, set[str]] = {}  # numbers and destinations that were refused to it

    async def look(self, declared: DeclaredQueue) -> Verdict | None:
        """Makes the store's queue as it is declared, if the resource may.

        None if it is another one meanwhile, or if its peers are not known yet: it is looked at again then.
        """
        if declared.spec is None:
            return await self._counted(declared, Verdict(Ready.NO, Reason.INVALID, declared.fault))
        try:
            verdict = await self._look(declared, declared.spec)
        except StoreError as error:
            verdict = refused(error)
        return verdict if verdict is None or verdict.counts else await self._counted(declared, verdict)

    async def _counted(self, declared: DeclaredQueue, verdict: Verdict) -> Verdict:
        """With what is in its queue, if it has one and the store can be asked."""
        try:
            found = await self._find(declared.name)
            if found is None or found.owner != owner_of(declared.resource.key):
                return replace(verdict, counts=NOTHING)
            return replace(verdict, counts=_counts(found, await self._store.listing.stats(found)))
        except StoreError:
            return verdict

    async def _look(self, declared: DeclaredQueue, spec: QueueSpec) -> Verdict | None:
        found = await self._find(declared.name)
        if self._claimants.get(declared.resource.key) is not declared:
            return None
        if lost := self._claimants.lost(declared):
            await self._let_go(declared, found, keeps=())
            return Verdict(Ready.NO, Reason.CONFLICT, _lost(declared, lost))
        if stranger := self._stranger(declared, found):
            return Verdict(Ready.NO, Reason.CONFLICT, stranger)
        spec = await self._store.catalogue.settled(spec, found)
        if found is None or found.spec != spec or found.owner != owner_of(declared.resource.key):
            await self._declare(declared, found, spec)
            found = await self._store.catalogue.find(declared.name)
        return self._verdict(found, spec, await self._store.listing.stats(found))

    async def _declare(self, declared: DeclaredQueue, found: Queue | None, spec: QueueSpec) -> None:
        """Raises StoreError. Of several that swap their numbers the first is refused, and lets go for the others."""
        key = declared.resource.key
        had = set() if found is None else set(found.spec.claims())
        self._waiting[key] = {split_claim(claim)[0] for claim in spec.claims()}  # it may come while we ask
        try:
            await self._store.catalogue.declare(declared.name, spec, owner_of(key), replace=True)
        except NumberTaken:
            await self._let_go(declared, found, keeps=spec.numbers())
            raise
        self._waiting.pop(key, None)
        self._wake(had.difference(spec.claims()))

    async def _find(self, name: str) -> Queue | None:
        try:
            return await self._store.catalogue.find(name)
        except QueueUnknown:
            return None

    def _stranger(self, declared: DeclaredQueue, found: Queue | None) -> str:
        """Another resource's queue, that we do not see; what nobody's resource declares is adopted."""
        owner = "" if found is None else found.owner
        key = owning_key(owner)
        if key is None or owner == owner_of(declared.resource.key) or self._watches(key[0]):
            return ""
        return (
            f"the queue {declared.name!r} belongs to Queue {key[1]!r} in namespace {key[0]!r}, which another operator "
            "sees to: choose another queueName, or delete that one; if that operator is gone for good, "
            f"penstock queue release {declared.name}"
        )

    async def _let_go(self, declared: DeclaredQueue, found: Queue | None, keeps: Iterable[str]) -> None:
        """Numbers are free for whoever wants them, but for these. The messages stay, and are reached by the name."""
        if found is None or found.owner != owner_of(declared.resource.key):
            return
        if gone := set(found.spec.numbers()).difference(keeps):
            await self._store.catalogue.declare(
                found.name, _without(gone, found.spec), found.owner, replace=True
            )
            self._wake(gone)

    def _wake(self, gone: set[str]) -> None:
        """Nobody has these claims any more."""
        free = {split_claim(claim)[0] for claim in gone}
        for key in [key for key, wanted in self._waiting.items() if wanted & free]:
            del self._waiting[key]
            self._again(key)

    def _verdict(self, queue: Queue, spec: QueueSpec, stats: dict[str, Any]) -> Verdict | None:
        counts = _counts(queue, stats)
        if queue.unkept:
            text = f"ackLevel {queue.spec.ack_level} is more than the store was last found to keep: see its persistence"
            return Verdict(Ready.NO, Reason.ACK_LEVEL_REFUSED, text, counts)
        unfit = self._lacking(spec.remote) if spec.remote is not None and spec.remote.peers else ""
        if unfit is None:
            return None
        if unfit:
            return Verdict(Ready.NO, Reason.UNKNOWN_PEER, unfit, counts)
        if spec.paused:
            return Verdict(Ready.YES, Reason.PAUSED, "paused: nothing is put in or given out", counts)
        return Verdict(Ready.YES, Reason.DECLARED, stats["condition"] or "as it is declared", counts)


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
            f"the queue {declared.name!r} belongs to Queue {by.name!r} in namespace {by.namespace!r}, which is older: "
            "choose another queueName, or delete one of them"
        )
    taken = ", ".join(f"{claim} (Queue {by.namespace}/{by.name})" for claim, by in sorted(lost.items()))
    return f"an older Queue has {taken}: choose other numbers, or delete one of them"


def _without(numbers: set[str], spec: QueueSpec) -> QueueSpec:
    """The same without these numbers."""

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
