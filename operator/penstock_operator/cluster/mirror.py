"""A local copy of the watched resources, updated by watches and corrected by periodic lists.

Both are needed: a watch that is cut can miss a deletion, and a list may be outdated by the time it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from penstock_operator.cluster.resources import Key, Kind, Resource

FORGET_S = 300.0  # longer than any list takes


class Mirror:
    """The known resources by key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Key, Resource] = {}
        self._reported_at: dict[Key, float] = {}  # when it was last reported
        self._deleted: dict[str, float] = {}  # uid -> when its deletion was reported
        self._listed: set[tuple[Kind, str]] = set()  # kinds and namespaces listed at least once

    # Reading

    def knows(self, kind: Kind, namespace: str) -> bool:
        """Return whether this kind was listed in the namespace; before that, absence means nothing."""
        return (kind, namespace) in self._listed or (kind, "") in self._listed

    @property
    def knows_something(self) -> bool:
        """Return whether any list has succeeded."""
        return bool(self._listed)

    def get(self, key: Key) -> Resource | None:
        """Return the resource, or None."""
        return self._known.get(key)

    def has(self, resource: Resource) -> bool:
        """Return whether this object, by uid, is known, perhaps in another version."""
        known = self._known.get(resource.key)
        return known is not None and known.uid == resource.uid

    def of(self, kind: Kind) -> list[Resource]:
        """Return all resources of a kind."""
        return [resource for resource in self._known.values() if resource.key.kind is kind]

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._known.values()))

    # Updating

    def put(self, resource: Resource) -> None:
        """Store a resource reported by a watch or returned by a write, unless it is outdated."""
        if resource.uid in self._deleted or self._is_older(resource):
            return
        self._known[resource.key] = resource
        self._reported_at[resource.key] = self._clock()

    def delete(self, resource: Resource) -> None:
        """Remove a deleted resource and ignore later reports of it."""
        self._deleted[resource.uid] = self._clock()
        known = self._known.get(resource.key)
        if known is not None and known.uid == resource.uid:
            del self._known[resource.key]
            self._reported_at.pop(resource.key, None)

    def replace(self, kind: Kind, namespace: str, found: Iterable[Resource], since: float) -> list[Resource]:
        """Apply a complete list of a namespace ('' = all namespaces) that began at `since` of the clock.

        Returns the resources that were deleted.
        """
        self._listed.add((kind, namespace))
        listed = {resource.key: resource for resource in found}
        for resource in listed.values():
            self._drop_newer_versions(resource, since)
            self.put(resource)
        lost = [
            resource
            for key, resource in self._known.items()
            if key.kind is kind and namespace in ("", key.namespace) and key not in listed
            if self._reported_at[key] < since
        ]
        for resource in lost:
            self.delete(resource)
        self._deleted = {uid: at for uid, at in self._deleted.items() if at > since - FORGET_S}
        return lost

    def _drop_newer_versions(self, listed: Resource, since: float) -> None:
        """Drop newer versions from before a restore of the cluster's backup, the only case of decreasing versions."""
        if self._deleted.get(listed.uid, since) < since:
            del self._deleted[listed.uid]
        if self._reported_at.get(listed.key, since) < since and self._is_older(listed):
            del self._known[listed.key], self._reported_at[listed.key]

    def _is_older(self, resource: Resource) -> bool:
        """Return whether a newer version is known, also of a recreated object, which has a higher version."""
        known = self._known.get(resource.key)
        return known is not None and known.version > resource.version
