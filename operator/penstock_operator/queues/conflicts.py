"""Which of several Queues has a name or a number that all of them want: the oldest.

It depends on nothing but the resources, so that it is the same after every restart, of whatever. What a Queue wants is
told as `name orders`, `rqp-mca 7`, or `to rqp-mca 7` at one peer or at all.

A Queue may want a thousand things, and whoever is to be looked at asks: so a circle of rivals is settled once, when
one of it has changed, and only what several want leads from one of them to the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from penstock_operator.cluster.resources import Key
from penstock_operator.documents.declared import DeclaredQueue
from services.store.model import EVERY_PEER, split_claim

NAME = "name "

Place = tuple[str, str | None]  # what, at which peer; None: at any of them, which all who lead there share
Lost = dict[str, Key]


def wants(declared: DeclaredQueue) -> list[str]:
    """Its name first, then what it claims."""
    return [f"{NAME}{declared.name}", *declared.claims]


class Claimants:
    """Every Queue, by what it wants."""

    def __init__(self) -> None:
        self._declared: dict[Key, DeclaredQueue] = {}
        self._at: dict[Place, set[Key]] = {}  # who is there
        self._shared: defaultdict[Key, set[Place]] = defaultdict(set)  # where somebody else is, too
        self._lost: dict[Key, Lost] = {}  # as far as it is settled

    def get(self, key: Key) -> DeclaredQueue | None:
        return self._declared.get(key)

    def put(self, key: Key, declared: DeclaredQueue | None) -> set[Key]:
        """It is this from now on, or gone; which others' cases that may change."""
        touched = self._sharing(key) | {key}
        for place in _places(self._declared.pop(key, None)):
            self._leave(place, key)
        self._shared.pop(key, None)
        if declared is not None:
            self._declared[key] = declared
            for place in _places(declared):
                self._enter(place, key)
        circle = self._circle(touched)
        for each in circle | {key}:
            self._lost.pop(each, None)
        return circle - {key}

    def lost(self, declared: DeclaredQueue) -> Lost:
        """What it wants and an older one has, with who has it; its name alone if it has lost that."""
        key = declared.resource.key
        if key not in self._lost:
            self._settle(self._circle({key}))
        return self._lost.get(key, {})  # one that is gone by now has lost nothing

    def _settle(self, circle: set[Key]) -> None:
        taken: defaultdict[str, dict[str, Key]] = defaultdict(dict)
        for each in sorted((self._declared[key] for key in circle), key=lambda one: one.resource.age_rank):
            key = each.resource.key
            self._lost[key] = _taken_from(each, taken)
            if not self._lost[key]:
                for what, peer in map(_split, wants(each)):
                    taken[what].setdefault(peer, key)

    def _enter(self, place: Place, key: Key) -> None:
        there = self._at.setdefault(place, set())
        there.add(key)
        if len(there) > 1:
            for each in there if len(there) == 2 else (key,):  # whoever was alone there is not any more
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
        """The places that lead from this one to others: where several go to peers of their own, none is in the way."""
        return {
            (what, peer)
            for what, peer in self._shared.get(key, ())
            if peer is not None or (what, EVERY_PEER) in self._at
        }

    def _circle(self, keys: Iterable[Key]) -> set[Key]:
        """They, whoever wants something that they want, whoever wants something that these want, and so on."""
        found = {key for key in keys if key in self._declared}
        fresh, seen = [*found], set[Place]()
        while fresh:
            for place in self._leading(fresh.pop()) - seen:
                seen.add(place)
                fresh += self._at[place] - found
                found |= self._at[place]
        return found


def _places(declared: DeclaredQueue | None) -> set[Place]:
    pairs = [] if declared is None else [_split(want) for want in wants(declared)]
    return {*pairs, *((what, None) for what, peer in pairs if peer)}


def _split(want: str) -> tuple[str, str]:
    """A name has no peer, whatever it reads like."""
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
