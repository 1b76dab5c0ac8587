"""Reconcile the store's peers with Peer resources and EndpointSlices, and write `.rqprc`.

All peers are reconciled together, and only differences are written. Peers declared by the command line or a file stay
as they are unless a resource of the same name adopts them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind, Resource, is_same
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.declared import owning_key
from penstock_operator.documents.refusals import refused
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.peers.desired_peers import DesiredPeer, declared_peers, unfit
from penstock_operator.peers.discovery import discovered_peers, found_in, namespace_of, rqprc
from penstock_operator.peers.rqprc import Rqprc
from penstock_operator.status.statuses import Statuses
from services.store import Store, StoreError
from services.store.model import RELEASED, OutcomeUnknown, Peer, Remote, StoreUnavailable, Unreadable

log = logging.getLogger(__name__)

ALL = Key(Kind.PEER, "", "")  # the work queue's key for all peers
DISCOVERED = "discovered"
MAX_SILENT = 3  # consecutive writes without an answer, after which the rest is not tried
UNSETTLED = (StoreUnavailable, OutcomeUnknown)  # the outcome depends on the store, not on the peer

Write = Callable[[], Awaitable[object]]
StoredPeers = dict[str, Peer | Unreadable]  # by name


def discoverer(release: str) -> str:
    """Return the owner of peers that a release discovered. release: namespace/name."""
    return f"{DISCOVERED} {release}"


class Peers:
    """The reconciler for all peers.

    on_change is called when the peers in the store have changed. enqueue is called with the resources to `settle`:
    statuses are written one by one later, so that they do not delay the writes to the store.

    own: namespace/name of the release. knows: whether a kind was listed in a namespace; before that, no peer from
    stored is removed. lists_slices_of: whether EndpointSlices of a namespace are listed.
    """

    def __init__(
        self,
        store: Store,
        mirror: Mirror,
        statuses: Statuses,
        rqprc: Rqprc,
        metrics: Metrics,
        *,
        own: str,
        knows: Callable[[Kind, str], bool],
        lists_slices_of: Callable[[str], bool],
        on_change: Callable[[], None],
        enqueue: Callable[[set[Key]], None],
    ) -> None:
        self._protocols: dict[str, str] | None = None  # by name, '' = unreadable; None before the first pass
        self._seen: dict[str, int] = {}  # uid -> generation at the last pass
        self._unwritten: frozenset[str] = frozenset()  # names of resources without a peer at the last pass
        self._store = store
        self._mirror = mirror
        self._statuses = statuses
        self._rqprc = rqprc
        self._metrics = metrics
        self._own_store = own.partition("/")[2]
        self._discoverer = discoverer(own)
        # owner prefix of releases in this namespace, including an earlier name of this one
        self._neighbours = discoverer(own.partition("/")[0]) + "/"
        self._knows = knows
        self._lists_slices_of = lists_slices_of
        self._on_change = on_change
        self._enqueue = enqueue
        self._verdicts: dict[Key, tuple[Resource, Verdict]] = {}  # of the last pass

    def lacking(self, remote: Remote) -> str | None:
        """Return what is wrong with the peers that a Queue names, '' if nothing; None before the first pass.

        A Peer that is about to be written counts as correct.
        """
        if self._protocols is None:
            return None
        fit = {name for name in remote.peers if self._protocols.get(name) in (remote.protocol.value, "")}
        if odd := set(remote.peers) - fit:
            peers = self._mirror.of(Kind.PEER)
            odd -= {each.key.name for each in peers if self._seen.get(each.uid) != each.generation}
        return unfit({name: self._protocols.get(name) for name in sorted(odd)}, remote.protocol)

    async def reconcile(self) -> str:
        """Reconcile all peers; return what the store could not do, '' if nothing. Raises ApiError."""
        found, resources = found_in(self._mirror.of(Kind.SLICE)), self._mirror.of(Kind.PEER)
        verdicts, desired = declared_peers(resources)
        declared = {name: one.spec for name, one in desired.items()}
        for name, spec in discovered_peers(found, self._own_store).items():
            desired.setdefault(name, DesiredPeer(spec, self._discoverer))
        troubles = await self._write_differences(desired, resources, {one.name for one in found})
        self._verdicts = {
            each.key: (each, troubles.get(each.key.name, verdict) if verdict.ready is Ready.YES else verdict)
            for each, verdict in verdicts
        }
        self._enqueue({*self._verdicts})
        specs = [spec for name, spec in declared.items() if name in desired]
        await self._rqprc.keep(rqprc(found, self._own_store, specs))
        return next((one.message for one in troubles.values() if one.ready is Ready.UNKNOWN), "")

    async def settle(self, resource: Resource) -> None:
        """Write the status from the last pass unless the resource has changed since. Raises ApiError."""
        found = self._verdicts.get(resource.key)
        if found is not None and is_same(found[0], resource):
            await self._statuses.settle(resource, found[1])

    async def _write_differences(
        self, desired: dict[str, DesiredPeer], resources: list[Resource], discovered: set[str]
    ) -> dict[str, Verdict]:
        """Write the differences to the store; return a verdict for each peer that failed, by name.

        Peers of other operators are dropped from `desired`. discovered: names of all discovered ports.
        """
        try:
            stored = {peer.name: peer for peer in await self._store.peers.all()}
        except StoreError as error:
            return dict.fromkeys(desired, refused(error)) or {"": refused(error)}
        strange = self._foreign_peers(desired, stored)
        for name in strange:
            del desired[name]
        deleted = {
            name for name, peer in stored.items() if name not in desired and self._is_gone(peer, discovered)
        }
        other = {name: one for name, one in desired.items() if self._differs(stored.get(name), one)}
        deletions = [(name, partial(self._store.peers.delete, name)) for name in sorted(deleted)]
        writes = [(name, partial(self._apply, name, one, stored.get(name))) for name, one in other.items()]
        failed = await _write_all(deletions)
        failed |= await _write_all(writes)
        protocols = {
            name: _protocol(peer) for name, peer in stored.items() if name not in deleted - failed.keys()
        }
        protocols |= {name: one.spec.protocol.value for name, one in other.items() if name not in failed}
        waiting = {name for name, error in failed.items() if isinstance(error, UNSETTLED)}
        self._take(desired, protocols, [each for each in resources if each.key.name not in waiting])
        return strange | {name: refused(error) for name, error in failed.items()}

    async def _apply(self, name: str, one: DesiredPeer, stored: Peer | Unreadable | None) -> None:
        _log_adoption(stored, one)
        await self._store.peers.apply(name, one.spec, one.owner)

    def _foreign_peers(self, desired: dict[str, DesiredPeer], stored: StoredPeers) -> dict[str, Verdict]:
        """Return a verdict for each peer that belongs to a resource in a namespace that is not watched."""
        found = {}
        for name in desired.keys() & stored.keys():
            ours, theirs = owning_key(desired[name].owner), owning_key(stored[name].owner)
            if ours and theirs and ours != theirs and not self._knows(Kind.PEER, theirs[0]):
                text = (
                    f"peer {name!r} belongs to a Peer in namespace {theirs[0]!r}, which another operator manages: "
                    "rename this one or delete that one; if that operator no longer exists, run "
                    f"penstock peer delete {name}"
                )
                found[name] = Verdict(Ready.NO, Reason.CONFLICT, text)
        return found

    def _is_gone(self, peer: Peer | Unreadable, discovered: set[str]) -> bool:
        """Return whether the resource or Service behind a stored peer is known to be deleted."""
        place = namespace_of(peer.name)
        if peer.owner == self._discoverer:
            return self._knows(Kind.SLICE, place) or not self._lists_slices_of(place)
        if peer.owner.startswith(self._neighbours):
            return peer.name not in discovered and self._knows(Kind.SLICE, place)
        return self._is_of_resources(peer.owner)

    def _is_of_resources(self, owner: str) -> bool:
        """Return whether the owner is a resource in a watched namespace."""
        key = owning_key(owner)
        return key is not None and self._knows(Kind.PEER, key[0])

    def _differs(self, stored: object, desired: DesiredPeer) -> bool:
        """Return whether to write the peer. Unreadable ones are replaced; discovery never overrides a declaration.

        A correct peer that another operator discovered stays that operator's. A peer of a deleted resource is replaced.
        """
        if not isinstance(stored, Peer):
            return True
        if not desired.owner.startswith(DISCOVERED):
            return stored.spec != desired.spec or stored.owner != desired.owner
        if stored.owner.startswith(DISCOVERED):
            return stored.spec != desired.spec
        return self._is_of_resources(stored.owner) or stored.owner.startswith(RELEASED)

    def _take(
        self, desired: dict[str, DesiredPeer], protocols: dict[str, str], resources: list[Resource]
    ) -> None:
        """Record the pass. protocols: of the peers now in the store. resources: those with a final result."""
        self._seen = {each.uid: each.generation for each in resources}
        unwritten = frozenset(each.key.name for each in resources) - protocols.keys()
        changed = (protocols, unwritten) != (self._protocols, self._unwritten)
        self._protocols, self._unwritten = protocols, unwritten
        found = sum(one.owner.startswith(DISCOVERED) for one in desired.values())
        self._metrics.peers.labels("resources").set(len(desired) - found)
        self._metrics.peers.labels("discovered").set(found)
        self._metrics.peers.labels("others").set(len(protocols.keys() - desired.keys()))
        if changed:
            self._on_change()


async def _write_all(writes: Iterable[tuple[str, Write]]) -> dict[str, StoreError]:
    """Run the writes; return the errors by name. Stops after MAX_SILENT consecutive writes without an answer."""
    failed: dict[str, StoreError] = {}
    silent: list[StoreError] = []
    for name, write in writes:
        if len(silent) == MAX_SILENT:
            failed[name] = silent[-1]
            continue
        try:
            await write()
        except StoreError as error:
            failed[name] = error
            silent = [*silent, error] if isinstance(error, UNSETTLED) else []
        else:
            silent = []
    for name, refusal in failed.items():
        if not isinstance(refusal, UNSETTLED):  # logged elsewhere, once
            fields = {"action": "peer_refused", "peer": name}
            log.warning("peer %r cannot be updated: %s", name, refusal, extra=fields)
    return failed


def _protocol(peer: Peer | Unreadable) -> str:
    return peer.spec.protocol.value if isinstance(peer, Peer) else ""


def _log_adoption(stored: Peer | Unreadable | None, desired: DesiredPeer) -> None:
    if stored is None or owning_key(stored.owner) or stored.owner.startswith(DISCOVERED):
        return
    if owning_key(desired.owner):
        fields = {"action": "peer_adopted", "peer": stored.name, "owner": stored.owner}
        log.info(
            "peer %r, owned by %r until now, was adopted by a resource",
            stored.name,
            stored.owner,
            extra=fields,
        )
