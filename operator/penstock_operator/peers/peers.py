"""The peers in the store, as Peer resources declare them and EndpointSlices tell; and `.rqprc`.

All of them are seen to together: whatever differs is put right, and nothing else is touched. What a command line or a
file declared belongs to nobody here, and stays, unless a resource of its name adopts it, as a Queue does a queue.
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
from penstock_operator.peers.discovery import discovered_peers, found_in, namespace_of, rqprc
from penstock_operator.peers.rqprc import Rqprc
from penstock_operator.peers.wanted_peers import Wanted, declared_peers, unfit
from penstock_operator.status.statuses import Statuses
from services.store import Store, StoreError
from services.store.model import RELEASED, OutcomeUnknown, Peer, Remote, StoreUnavailable, Unreadable

log = logging.getLogger(__name__)

ALL = Key(Kind.PEER, "", "")  # what waits to be looked at, whichever of them changed
DISCOVERED = "discovered"
MAX_SILENT = 3  # writings, one after the other, that a store could not do: then it is asked no more
UNSETTLED = (StoreUnavailable, OutcomeUnknown)  # to be tried again, and nothing said against the peer

Write = Callable[[], Awaitable[object]]
There = dict[str, Peer | Unreadable]  # in the store, by name


def discoverer(release: str) -> str:
    """Owner of what that release found. release: namespace and name."""
    return f"{DISCOVERED} {release}"


class Peers:
    """`on_change` is called when the names of the peers in the store are others.

    `tell` is called with the resources about which something was found out: `settle` writes it, each by itself, so that
    nobody who is still to be put into the store waits for so many statuses.

    own: namespace and name of our release. knows: whether all resources of a kind in a namespace are known; while
    they are not, no peer that they may declare is removed. looks_into: whether slices of a namespace are listed.
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
        looks_into: Callable[[str], bool],
        on_change: Callable[[], None],
        tell: Callable[[set[Key]], None],
    ) -> None:
        self._protocols: dict[str, str] | None = None  # by name, '' = unreadable; None: nobody has looked yet
        self._seen: dict[str, int] = {}  # uid -> generation of the resources at the last look
        self._unwritten: frozenset[str] = frozenset()  # names of resources that have no peer by that look
        self._store = store
        self._mirror = mirror
        self._statuses = statuses
        self._rqprc = rqprc
        self._metrics = metrics
        self._own_store = own.partition("/")[2]
        self._discoverer = discoverer(own)
        self._neighbours = discoverer(own.partition("/")[0]) + "/"  # also we, by another name
        self._knows = knows
        self._looks_into = looks_into
        self._on_change = on_change
        self._tell = tell
        self._verdicts: dict[Key, tuple[Resource, Verdict]] = {}  # of the last look

    def lacking(self, remote: Remote) -> str | None:
        """What is wrong with the peers that it names, '' = nothing; None before the first look.

        A Peer that is about to be written is as it should be.
        """
        if self._protocols is None:
            return None
        fit = {name for name in remote.peers if self._protocols.get(name) in (remote.protocol.value, "")}
        if odd := set(remote.peers) - fit:
            peers = self._mirror.of(Kind.PEER)
            odd -= {each.key.name for each in peers if self._seen.get(each.uid) != each.generation}
        return unfit({name: self._protocols.get(name) for name in sorted(odd)}, remote.protocol)

    async def look(self) -> str:
        """What the store could not do, '' = nothing. Raises ApiError. What it refuses is in the verdicts."""
        found, resources = found_in(self._mirror.of(Kind.SLICE)), self._mirror.of(Kind.PEER)
        verdicts, wanted = declared_peers(resources)
        declared = {name: one.spec for name, one in wanted.items()}
        for name, spec in discovered_peers(found, self._own_store).items():
            wanted.setdefault(name, Wanted(spec, self._discoverer))
        troubles = await self._put_right(wanted, resources, {one.name for one in found})
        self._verdicts = {
            each.key: (each, troubles.get(each.key.name, verdict) if verdict.ready is Ready.YES else verdict)
            for each, verdict in verdicts
        }
        self._tell({*self._verdicts})
        specs = [spec for name, spec in declared.items() if name in wanted]
        await self._rqprc.keep(rqprc(found, self._own_store, specs))
        return next((one.message for one in troubles.values() if one.ready is Ready.UNKNOWN), "")

    async def settle(self, resource: Resource) -> None:
        """Tells what the last look found out about it, if it is the same by now. Raises ApiError."""
        found = self._verdicts.get(resource.key)
        if found is not None and is_same(found[0], resource):
            await self._statuses.settle(resource, found[1])

    async def _put_right(
        self, wanted: dict[str, Wanted], resources: list[Resource], told: set[str]
    ) -> dict[str, Verdict]:
        """What kept it from being done, by name. What another operator sees to is wanted no more.

        told: names of what slices tell of, our own edges among them.
        """
        try:
            there = {peer.name: peer for peer in await self._store.peers.all()}
        except StoreError as error:
            return dict.fromkeys(wanted, refused(error)) or {"": refused(error)}
        strange = self._strangers(wanted, there)
        for name in strange:
            del wanted[name]
        gone = {name for name, peer in there.items() if name not in wanted and self._is_gone(peer, told)}
        other = {name: one for name, one in wanted.items() if self._differs(there.get(name), one)}
        deletions = [(name, partial(self._store.peers.delete, name)) for name in sorted(gone)]
        writes = [(name, partial(self._apply, name, one, there.get(name))) for name, one in other.items()]
        failed = await _write_all(deletions)
        failed |= await _write_all(writes)
        protocols = {
            name: _protocol(peer) for name, peer in there.items() if name not in gone - failed.keys()
        }
        protocols |= {name: one.spec.protocol.value for name, one in other.items() if name not in failed}
        waiting = {name for name, error in failed.items() if isinstance(error, UNSETTLED)}
        self._take(wanted, protocols, [each for each in resources if each.key.name not in waiting])
        return strange | {name: refused(error) for name, error in failed.items()}

    async def _apply(self, name: str, one: Wanted, there: Peer | Unreadable | None) -> None:
        _tell_of_adoption(there, one)
        await self._store.peers.apply(name, one.spec, one.owner)

    def _strangers(self, wanted: dict[str, Wanted], there: There) -> dict[str, Verdict]:
        """Other resources' peers, that we do not see."""
        found = {}
        for name in wanted.keys() & there.keys():
            ours, theirs = owning_key(wanted[name].owner), owning_key(there[name].owner)
            if ours and theirs and ours != theirs and not self._knows(Kind.PEER, theirs[0]):
                text = (
                    f"the peer {name!r} belongs to a Peer in namespace {theirs[0]!r}, which another operator sees to: "
                    "rename this one, or delete that one; if that operator is gone for good, "
                    f"penstock peer delete {name}"
                )
                found[name] = Verdict(Ready.NO, Reason.CONFLICT, text)
        return found

    def _is_gone(self, peer: Peer | Unreadable, told: set[str]) -> bool:
        """Whether nobody is left who declares it, or whose edges it leads to, of those that we know."""
        place = namespace_of(peer.name)
        if peer.owner == self._discoverer:
            return self._knows(Kind.SLICE, place) or not self._looks_into(place)
        if peer.owner.startswith(self._neighbours):
            return peer.name not in told and self._knows(Kind.SLICE, place)
        return self._is_of_resources(peer.owner)

    def _is_of_resources(self, owner: str) -> bool:
        """Of those that we see."""
        key = owning_key(owner)
        return key is not None and self._knows(Kind.PEER, key[0])

    def _differs(self, there: object, wanted: Wanted) -> bool:
        """What cannot be read is replaced. What others declared is not overruled by what was only found.

        Of several operators that find the same, each leaves to another what is right already. A resource of ours that
        is not wanted any more is gone: it overrules nothing.
        """
        if not isinstance(there, Peer):
            return True
        if not wanted.owner.startswith(DISCOVERED):
            return there.spec != wanted.spec or there.owner != wanted.owner
        if there.owner.startswith(DISCOVERED):
            return there.spec != wanted.spec
        return self._is_of_resources(there.owner) or there.owner.startswith(RELEASED)

    def _take(self, wanted: dict[str, Wanted], protocols: dict[str, str], resources: list[Resource]) -> None:
        """protocols: of the peers in the store as they are now. resources: those whose case is settled."""
        self._seen = {each.uid: each.generation for each in resources}
        unwritten = frozenset(each.key.name for each in resources) - protocols.keys()
        changed = (protocols, unwritten) != (self._protocols, self._unwritten)
        self._protocols, self._unwritten = protocols, unwritten
        found = sum(one.owner.startswith(DISCOVERED) for one in wanted.values())
        self._metrics.peers.labels("resources").set(len(wanted) - found)
        self._metrics.peers.labels("discovered").set(found)
        self._metrics.peers.labels("others").set(len(protocols.keys() - wanted.keys()))
        if changed:
            self._on_change()


async def _write_all(writes: Iterable[tuple[str, Write]]) -> dict[str, StoreError]:
    """What failed, by name. One that cannot be written holds up no other, but a store that does nothing does."""
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
        if not isinstance(refusal, UNSETTLED):  # of which the log tells otherwise, and once
            fields = {"action": "peer_refused", "peer": name}
            log.warning("the peer %r cannot be put right: %s", name, refusal, extra=fields)
    return failed


def _protocol(peer: Peer | Unreadable) -> str:
    return peer.spec.protocol.value if isinstance(peer, Peer) else ""


def _tell_of_adoption(there: Peer | Unreadable | None, wanted: Wanted) -> None:
    if there is None or owning_key(there.owner) or there.owner.startswith(DISCOVERED):
        return
    if owning_key(wanted.owner):
        fields = {"action": "peer_adopted", "peer": there.name, "owner": there.owner}
        log.info("the peer %r of %r is that of a resource now", there.name, there.owner, extra=fields)
