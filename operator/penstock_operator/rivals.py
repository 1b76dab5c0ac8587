"""Which of several Queues has a name or a number that all of them want: the oldest.

It depends on nothing but the resources, so that it is the same after every restart, of whatever. What a Queue wants is
told as `name orders`, `rqp-mca 7`, or `to rqp-mca 7` at one peer or at all.
"""

from __future__ import annotations

from collections import defaultdict

from penstock_operator.declared import DeclaredQueue
from penstock_operator.resources import Key
from services.store.rqp_binding import EVERY_PEER, peers_overlap, split_claim

NAME = "name "


def wants(declared: DeclaredQueue) -> list[str]:
    """Its name first, then what it claims."""
    return [f"{NAME}{declared.name}", *declared.claims]


class Claimants:
    """Every Queue, by what it wants."""

    def __init__(self) -> None:
        self._declared: dict[Key, DeclaredQueue] = {}
        self._by_want: defaultdict[str, set[Key]] = defaultdict(set)
        self._by_place: defaultdict[str, set[Key]] = defaultdict(set)  # the same, whatever peer it leads to

    def get(self, key: Key) -> DeclaredQueue | None:
        return self._declared.get(key)

    def put(self, key: Key, declared: DeclaredQueue | None) -> set[Key]:
        """It is this from now on, or gone; which others' cases that may change."""
        old = self._declared.pop(key, None)
        touched = self._sharing(old)
        for want in _wants(old):
            _discard(self._by_want, want, key)
            _discard(self._by_place, _split(want)[0], key)
        if declared is not None:
            self._declared[key] = declared
            for want in _wants(declared):
                self._by_want[want].add(key)
                self._by_place[_split(want)[0]].add(key)
            touched |= self._sharing(declared)
        return self._circle(touched) - {key}

    def lost(self, declared: DeclaredQueue) -> dict[str, Key]:
        """What it wants and an older one has, with who has it; its name alone if it has lost that."""
        circle = self._circle(self._sharing(declared))
        if len(circle) == 1:
            return {}
        taken: dict[str, Key] = {}
        for each in sorted((self._declared[key] for key in circle), key=lambda one: one.resource.age_rank):
            lost = _taken_from(each, taken)
            if each.resource.key == declared.resource.key:
                return lost
            for want in wants(each):
                if not lost:
                    taken.setdefault(want, each.resource.key)
        raise AssertionError("who asks is among them")

    def _sharing(self, declared: DeclaredQueue | None) -> set[Key]:
        """Itself, if it is known, and whoever else wants one of these."""
        return {key for want in _wants(declared) for key in self._wanting(want)}

    def _wanting(self, want: str) -> set[Key]:
        what, peer = _split(want)
        if peer == EVERY_PEER:
            return self._by_place.get(what, set())
        found = self._by_want.get(want, set())
        return found | self._by_want.get(f"{what} at {EVERY_PEER}", set()) if peer else found

    def _circle(self, keys: set[Key]) -> set[Key]:
        """They, whoever wants something that they want, whoever wants something that these want, and so on."""
        found = fresh = keys & self._declared.keys()
        while fresh:
            fresh = {near for key in fresh for near in self._sharing(self._declared[key])} - found
            found = found | fresh
        return found


def _wants(declared: DeclaredQueue | None) -> list[str]:
    return [] if declared is None else wants(declared)


def _split(want: str) -> tuple[str, str]:
    """A name has no peer, whatever it reads like."""
    return (want, "") if want.startswith(NAME) else split_claim(want)


def _discard(index: defaultdict[str, set[Key]], want: str, key: Key) -> None:
    index[want].discard(key)
    if not index[want]:
        del index[want]


def _taken_from(declared: DeclaredQueue, taken: dict[str, Key]) -> dict[str, Key]:
    name, *claims = wants(declared)
    if name in taken:
        return {name: taken[name]}
    return {claim: by for claim in claims if (by := _holder(claim, taken)) is not None}


def _holder(claim: str, taken: dict[str, Key]) -> Key | None:
    what, peer = split_claim(claim)
    if not peer:
        return taken.get(claim)
    for other, by in taken.items():
        its, at = split_claim(other)
        if its == what and peers_overlap(at, peer):
            return by
    return None
