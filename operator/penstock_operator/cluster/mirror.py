"""What there is in the cluster: what watches tell, put right by lists.

A watch may be cut and lose a deletion, and a list is as old as its beginning: both are needed. Nobody writes to the
cluster here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from penstock_operator.cluster.resources import Key, Kind, Resource

FORGET_S = 300.0  # longer than any list takes


class Mirror:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Key, Resource] = {}
        self._told: dict[Key, float] = {}  # when something was last heard of it
        self._gone: dict[str, float] = {}  # uid -> when it was heard to be gone
        self._listed: set[tuple[Kind, str]] = set()  # at least once

    # what is known

    def knows(self, kind: Kind, namespace: str) -> bool:
        """Whether all of that kind there are known: before that, nobody's absence means anything."""
        return (kind, namespace) in self._listed or (kind, "") in self._listed

    @property
    def knows_something(self) -> bool:
        return bool(self._listed)

    def get(self, key: Key) -> Resource | None:
        return self._known.get(key)

    def has(self, resource: Resource) -> bool:
        """It, and not another one of its name; perhaps as it was before."""
        known = self._known.get(resource.key)
        return known is not None and known.uid == resource.uid

    def of(self, kind: Kind) -> list[Resource]:
        return [resource for resource in self._known.values() if resource.key.kind is kind]

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._known.values()))

    # what is told

    def is_there(self, resource: Resource) -> None:
        """A watch, or an answer to a change of ours, tells this."""
        if resource.uid in self._gone or self._is_older(resource):
            return
        self._known[resource.key] = resource
        self._told[resource.key] = self._clock()

    def is_gone(self, resource: Resource) -> None:
        self._gone[resource.uid] = self._clock()
        known = self._known.get(resource.key)
        if known is not None and known.uid == resource.uid:
            del self._known[resource.key]
            self._told.pop(resource.key, None)

    def is_all(self, kind: Kind, namespace: str, found: Iterable[Resource], since: float) -> list[Resource]:
        """A list that began at `since` of the clock holds all there are in the namespace, '' = all namespaces.

        Returns what it shows to be gone.
        """
        self._listed.add((kind, namespace))
        listed = {resource.key: resource for resource in found}
        for resource in listed.values():
            self._forget_what_is_later(resource, since)
            self.is_there(resource)
        lost = [
            resource
            for key, resource in self._known.items()
            if key.kind is kind and namespace in ("", key.namespace) and key not in listed
            if self._told[key] < since
        ]
        for resource in lost:
            self.is_gone(resource)
        self._gone = {uid: at for uid, at in self._gone.items() if at > since - FORGET_S}
        return lost

    def _forget_what_is_later(self, listed: Resource, since: float) -> None:
        """Versions go back only where a backup of the cluster was restored: what was told before that never was."""
        if self._gone.get(listed.uid, since) < since:
            del self._gone[listed.uid]
        if self._told.get(listed.key, since) < since and self._is_older(listed):
            del self._known[listed.key], self._told[listed.key]

    def _is_older(self, resource: Resource) -> bool:
        """Also than another one of its name: who has the name later has the higher version."""
        known = self._known.get(resource.key)
        return known is not None and known.version > resource.version
