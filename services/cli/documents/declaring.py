"""What documents do to a store: planned first, so that nothing is done if one of them would be refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum

from services.cli.documents.documents import Wanted
from services.cli.terminal.exits import Exit, Failure
from services.store import Queue, QueueSpec, Store
from services.store.catalogue import claim_taken
from services.store.model import (
    RESERVED,
    AckLevelRefused,
    PeerSpec,
    QueueUnknown,
    StoreFault,
    check_name,
    is_internal,
    peers_overlap,
    split_claim,
)
from services.store.redis import Promises

OWNER = "file"


class Change(StrEnum):
    """What a document does to the store."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


async def plan(store: Store, wanted: list[Wanted], owner: str = OWNER) -> list[Change]:
    """What each document would do. Raises Failure with a line for each that the store would refuse."""
    promises, claims = await store.promises.now(), Claims(await store.registry.numbers())
    changes: list[Change] = []
    refused: list[str] = []
    for one in wanted:
        if isinstance(one.spec, PeerSpec):
            changes.append(await _peer_change(store, one.name, one.spec, owner))
            continue
        there = await _find(store, one.name)
        spec = promises.settled(one.spec, there.spec.ack_level if there is not None else "")
        changes.append(_change(spec, there, owner))
        if fault := _fault(one.name, spec, there, promises) or claims.claim(one.name, spec):
            refused.append(f"{one.place}: {fault}")
    if refused:
        raise Failure(Exit.REFUSED, "document_refused", "\n".join(refused))
    return changes


class Claims:
    """Which queue has which number and leads where, as it will be when the documents before are declared."""

    def __init__(self, taken: dict[str, str]) -> None:
        """taken: claim -> queue, as the store has it now."""
        self._taken: dict[str, dict[str, str]] = defaultdict(dict)  # 'to rqp-mca 7' -> peer -> queue
        self._of: dict[str, list[str]] = defaultdict(list)  # queue -> its claims
        for claim, name in taken.items():
            self._add(claim, name)

    def claim(self, name: str, spec: QueueSpec) -> str:
        """The queue's claims are these from now on; or what is wrong with that."""
        for claim in spec.claims():
            if (rival := self._rival(claim, name)) is not None:
                field = "bindings" if spec.remote is None else "remote"
                return f"spec.{field}: {claim_taken(*rival)}"
        for claim in self._of.pop(name, ()):
            what, peer = split_claim(claim)
            del self._taken[what][peer]
        for claim in spec.claims():
            self._add(claim, name)
        return ""

    def _add(self, claim: str, name: str) -> None:
        what, peer = split_claim(claim)
        self._taken[what][peer] = name
        self._of[name].append(claim)

    def _rival(self, claim: str, name: str) -> tuple[str, str] | None:
        """Another queue's claim, and that queue; `*` is every peer (lua/registry.lua)."""
        what, peer = split_claim(claim)
        for its, by in self._taken[what].items():
            if by != name and peers_overlap(its, peer):
                return f"{what} at {its}" if its else what, by
        return None


async def _peer_change(store: Store, name: str, spec: PeerSpec, owner: str) -> Change:
    try:
        there = await store.peers.find(name)
    except StoreFault:  # it cannot be read: this one takes its place
        return Change.CHANGED
    if there is None:
        return Change.CREATED
    return Change.UNCHANGED if (there.spec, there.owner) == (spec, owner) else Change.CHANGED


async def _find(store: Store, name: str) -> Queue | None:
    try:
        return await store.catalogue.find(name)
    except QueueUnknown:
        return None


def _change(spec: QueueSpec, there: Queue | None, owner: str) -> Change:
    if there is None:
        return Change.CREATED
    return Change.UNCHANGED if there.spec == spec and there.owner == owner else Change.CHANGED


def _fault(name: str, spec: QueueSpec, there: Queue | None, promises: Promises) -> str:
    if there is None and (fault := _name_fault(name)):
        return f"metadata.name: {fault}"
    if is_internal(name):
        return f"metadata.name: {RESERVED}; choose another name"
    if there is not None and there.domain != spec.domain:
        return f"spec.domain: the queue is in {there.domain!r} and cannot move: keep it there, or delete it first"
    try:
        promises.check(spec.ack_level, there.spec.ack_level if there is not None else "")
    except AckLevelRefused as error:
        return f"spec.ackLevel: {error}"
    return ""


def _name_fault(name: str) -> str:
    """Return why no new queue may have this name; one that a client made keeps it."""
    try:
        check_name(name)
    except ValueError as error:
        return f"{error}: choose another name for a queue that is not there yet"
    return ""


async def apply(
    store: Store, wanted: list[Wanted], owner: str = OWNER, advance: Callable[[int], None] = lambda _: None
) -> list[Change]:
    """Declares what is new or different; nothing at all if one of them would be refused."""
    changes = await plan(store, wanted, owner)
    await carry_out(store, wanted, changes, owner, advance)
    return changes


async def carry_out(
    store: Store,
    wanted: list[Wanted],
    changes: list[Change],
    owner: str = OWNER,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """What was planned. It may be done again after a break: what is there already stays as it is."""
    for one, change in zip(wanted, changes, strict=True):
        if change is not Change.UNCHANGED:
            await _declare(store, one, owner)
        advance(1)


async def _declare(store: Store, one: Wanted, owner: str) -> None:
    if isinstance(one.spec, PeerSpec):
        await store.peers.apply(one.name, one.spec, owner)
    else:
        await store.catalogue.declare(one.name, one.spec, owner, replace=True)
