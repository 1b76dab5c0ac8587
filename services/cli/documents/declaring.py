"""Apply documents to a store: plan all first, so that nothing changes if one would be refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum

from services.cli.documents.documents import Declaration
from services.cli.terminal.exits import Exit, Failure
from services.store import Queue, QueueSpec, Store
from services.store.catalogue import claim_taken
from services.store.model import (
    RESERVED,
    AckLevelRefused,
    PeerSpec,
    Promises,
    QueueUnknown,
    StoreFault,
    check_name,
    is_internal,
    peers_overlap,
    split_claim,
)

OWNER = "file"


class Change(StrEnum):
    """The effect of a document on the store."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


Overridden = Callable[[Declaration, str], None]  # called for each document that takes over from another owner


async def plan(
    store: Store,
    declarations: list[Declaration],
    owner: str = OWNER,
    overridden: Overridden = lambda one, former: None,
) -> list[Change]:
    """Return the effect of each document. Raises Failure with a line for each that the store would refuse.

    overridden: called with each document whose queue or peer belongs to another owner, and that owner.
    """
    promises, claims = await store.promises.now(), Claims(await store.registry.numbers())
    changes: list[Change] = []
    former: list[tuple[Declaration, str]] = []
    refused: list[str] = []
    for one in declarations:
        if isinstance(one.spec, PeerSpec):
            change, its_owner = await _peer_change(store, one.name, one.spec, owner)
            changes.append(change)
            former.append((one, its_owner))
            continue
        existing = await _find(store, one.name)
        spec = promises.settled(one.spec, existing.spec.ack_level if existing is not None else "")
        changes.append(_change(spec, existing, owner))
        former.append((one, existing.owner if existing is not None else owner))
        if fault := _fault(one.name, spec, existing, promises) or claims.claim(one.name, spec):
            refused.append(f"{one.place}: {fault}")
    if refused:
        raise Failure(Exit.REFUSED, "document_refused", "\n".join(refused))
    for one, its_owner in former:
        if its_owner != owner:
            overridden(one, its_owner)
    return changes


class Claims:
    """The unique claims of queues (numbers, remote targets) as they will be once the documents so far are applied."""

    def __init__(self, taken: dict[str, str]) -> None:
        """Start from the claims in the store. taken: claim -> queue."""
        self._taken: dict[str, dict[str, str]] = defaultdict(dict)  # 'to rqp-mca 7' -> peer -> queue
        self._of: dict[str, list[str]] = defaultdict(list)  # queue -> its claims
        for claim, name in taken.items():
            self._add(claim, name)

    def claim(self, name: str, spec: QueueSpec) -> str:
        """Replace the queue's claims by those of the spec; return the fault if another queue has one, else ''."""
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
        """Return the conflicting claim and the queue that has it; `*` is every peer (lua/registry.lua)."""
        what, peer = split_claim(claim)
        for its, by in self._taken[what].items():
            if by != name and peers_overlap(its, peer):
                return f"{what} at {its}" if its else what, by
        return None


async def _peer_change(store: Store, name: str, spec: PeerSpec, owner: str) -> tuple[Change, str]:
    """Return the effect of the document, and the present owner of the peer."""
    try:
        existing = await store.peers.find(name)
    except StoreFault:  # the stored one is unreadable and is replaced
        return Change.CHANGED, owner
    if existing is None:
        return Change.CREATED, owner
    is_same = (existing.spec, existing.owner) == (spec, owner)
    return Change.UNCHANGED if is_same else Change.CHANGED, existing.owner


async def _find(store: Store, name: str) -> Queue | None:
    try:
        return await store.catalogue.find(name)
    except QueueUnknown:
        return None


def _change(spec: QueueSpec, existing: Queue | None, owner: str) -> Change:
    if existing is None:
        return Change.CREATED
    return Change.UNCHANGED if existing.spec == spec and existing.owner == owner else Change.CHANGED


def _fault(name: str, spec: QueueSpec, existing: Queue | None, promises: Promises) -> str:
    if existing is None and (fault := _name_fault(name)):
        return f"metadata.name: {fault}"
    if is_internal(name):
        return f"metadata.name: {RESERVED}; choose another name"
    if existing is not None and existing.domain != spec.domain:
        return f"spec.domain: the queue is in {existing.domain!r} and cannot move: keep it existing, or delete it first"
    try:
        promises.check(spec.ack_level, existing.spec.ack_level if existing is not None else "")
    except AckLevelRefused as error:
        return f"spec.ackLevel: {error}"
    return ""


def _name_fault(name: str) -> str:
    """Return why no new queue may have this name; existing queues keep theirs."""
    try:
        check_name(name)
    except ValueError as error:
        return f"{error}: choose another name for a new queue"
    return ""


async def apply(
    store: Store,
    declarations: list[Declaration],
    owner: str = OWNER,
    advance: Callable[[int], None] = lambda _: None,
    overridden: Overridden = lambda one, former: None,
) -> list[Change]:
    """Declare what is new or different. Raises Failure before any change if a document would be refused.

    overridden: as in `plan`, called before the first change.
    """
    changes = await plan(store, declarations, owner, overridden)
    await carry_out(store, declarations, changes, owner, advance)
    return changes


async def carry_out(
    store: Store,
    declarations: list[Declaration],
    changes: list[Change],
    owner: str = OWNER,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Carry out the plan. Idempotent, so that it can be repeated after a failure."""
    for one, change in zip(declarations, changes, strict=True):
        if change is not Change.UNCHANGED:
            await _declare(store, one, owner)
        advance(1)


async def _declare(store: Store, one: Declaration, owner: str) -> None:
    if isinstance(one.spec, PeerSpec):
        await store.peers.apply(one.name, one.spec, owner)
    else:
        await store.catalogue.declare(one.name, one.spec, owner, replace=True)
