"""Resolve conflicts between Queues that claim the same name, number or remote target: the oldest wins.

The result depends on the resources only, so that it is the same after a restart. Claims are texts such as
`name orders`, `rqp-mca 7`, or `to rqp-mca 7`, the last at one peer or at all.

A Queue may have a thousand claims. Therefore a group of conflicting Queues is resolved once after a change of one of
them, and the group is found through shared claims only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from penstock_operator.cluster.resources import Key
from penstock_operator.documents.declared import DeclaredQueue
from services.store.model import EVERY_PEER, split_claim

NAME = "name "

Place = tuple[str, str | None]  # claim, peer; None: any peer, which all Queues with this target share
Lost = dict[str, Key]


def wants(declared: DeclaredQueue) -> list[str]:
    """Return the claims of a Queue, its name first."""
    return [f"{NAME}{declared.name}", *declared.claims]


class Claimants:
    """All Queues, indexed by their claims."""

    def __init__(self) -> None:
        self._declared: dict[Key, DeclaredQueue] = {}
        self._at: dict[Place, set[Key]] = {}  # Queues by claim
        self._shared: defaultdict[Key, set[Place]] = defaultdict(set)  # claims shared with other Queues
        self._lost: dict[Key, Lost] = {}  # results, as far as they are computed

    def get(self, key: Key) -> DeclaredQueue | None:
        """Return the Queue as last put, or None."""
        return self._declared.get(key)

    def put(self, key: Key, declared: DeclaredQueue | None) -> set[Key]:
        """Set or remove (None) a Queue; return the other Queues whose conflicts may have changed."""
        touched = self._sharing(key) | {key}
        for place in _places(self._declared.pop(key, None)):
            self._leave(place, key)
        self._shared.pop(key, None)
        if declared is not None:
            self._declared[key] = declared
            for place in _places(declared):
                self._enter(place, key)
        group = self._group(touched)
        for each in group | {key}:
            self._lost.pop(each, None)
        return group - {key}

    def lost(self, declared: DeclaredQueue) -> Lost:
        """Return the claims lost to older Queues, with their holders; only the name if that is lost."""
        key = declared.resource.key
        if key not in self._lost:
            self._settle(self._group({key}))
        return self._lost.get(key, {})  # {} if it was removed meanwhile

    def _settle(self, group: set[Key]) -> None:
        taken: defaultdict[str, dict[str, Key]] = defaultdict(dict)
        for each in sorted((self._declared[key] for key in group), key=lambda one: one.resource.age_rank):
            key = each.resource.key
            self._lost[key] = _taken_from(each, taken)
            if not self._lost[key]:
                for what, peer in map(_split, wants(each)):
                    taken[what].setdefault(peer, key)

    def _enter(self, place: Place, key: Key) -> None:
        there = self._at.setdefault(place, set())
        there.add(key)
        if len(there) > 1:
            for each in there if len(there) == 2 else (key,):  # the first one now shares it, too
                self._shared[each].add(place)

    def _leave(self, place: Place, key: Key) -> None:
        there = self._at[place]
        there.discard(key)
        if not there:
            del self._at[place]
        elif len(there) == 1:
            self._shared[next(iter(there))].discard(place)

    def _sharing(self, key: Key) -> set[Key]:
        return {near for place in self._leading(key) for near in self._at[place]}

    def _leading(self, key: Key) -> set[Place]:
        """Return the shared places that can conflict: targets at different peers do not."""
        return {
            (what, peer)
            for what, peer in self._shared.get(key, ())
            if peer is not None or (what, EVERY_PEER) in self._at
        }

    def _group(self, keys: Iterable[Key]) -> set[Key]:
        """Return the transitive closure of conflicting Queues."""
        found = {key for key in keys if key in self._declared}
        fresh, visited = [*found], set[Place]()
        while fresh:
            for place in self._leading(fresh.pop()) - visited:
                visited.add(place)
                fresh += self._at[place] - found
                found |= self._at[place]
        return found


def _places(declared: DeclaredQueue | None) -> set[Place]:
    pairs = [] if declared is None else [_split(want) for want in wants(declared)]
    return {*pairs, *((what, None) for what, peer in pairs if peer)}


def _split(want: str) -> tuple[str, str]:
    """Split a claim into what and peer; a name has no peer, even if it contains the separator."""
    return (want, "") if want.startswith(NAME) else split_claim(want)


def _taken_from(declared: DeclaredQueue, taken: defaultdict[str, dict[str, Key]]) -> Lost:
    name, *claims = wants(declared)
    if name in taken:
        return {name: taken[name][""]}
    return {claim: by for claim in claims if (by := _holder(claim, taken)) is not None}


def _holder(claim: str, taken: defaultdict[str, dict[str, Key]]) -> Key | None:
    what, peer = split_claim(claim)
    by = taken.get(what, {})
    if peer == EVERY_PEER:
        return next(iter(by.values()), None)
    return by.get(peer, by.get(EVERY_PEER))
