"""What Queues claim, as it is heard of them; and whose cases are others once one of them has been seen to."""

from __future__ import annotations

from penstock_operator.cluster.resources import Key, Resource, is_same
from penstock_operator.documents.declared import DeclaredQueue, read_queue
from penstock_operator.queues.conflicts import Claimants


class Claiming:
    def __init__(self) -> None:
        self.claimants = Claimants()
        self._after: dict[Key, set[Key]] = {}

    def hear(self, resource: Resource) -> DeclaredQueue | None:
        """What it declares; None if that is not known."""
        declared = self.claimants.get(resource.key)
        if declared is None or not is_same(declared.resource, resource):
            touched = self.claimants.put(resource.key, read_queue(resource))
            self._after.setdefault(resource.key, set()).update(touched)
        return self.claimants.get(resource.key)

    def seen_to(self, key: Key) -> set[Key]:
        """Who is to be looked at again."""
        return self._after.pop(key, set())

    def gone(self, key: Key) -> set[Key]:
        """The same, of one that is not there any more."""
        return self.claimants.put(key, None) | self.seen_to(key)
