"""Track the claims of Queues, and which other Queues to reconcile after one has changed."""

from __future__ import annotations

from penstock_operator.cluster.resources import Key, Resource, is_same
from penstock_operator.documents.declared import DeclaredQueue, read_queue
from penstock_operator.queues.conflicts import Claimants


class ClaimTracker:
    """The claims of all Queues, parsed as they arrive."""

    def __init__(self) -> None:
        self.claimants = Claimants()
        self._after: dict[Key, set[Key]] = {}

    def update(self, resource: Resource) -> DeclaredQueue | None:
        """Update the claims of a Queue and return it parsed."""
        declared = self.claimants.get(resource.key)
        if declared is None or not is_same(declared.resource, resource):
            touched = self.claimants.put(resource.key, read_queue(resource))
            self._after.setdefault(resource.key, set()).update(touched)
        return self.claimants.get(resource.key)

    def take_affected(self, key: Key) -> set[Key]:
        """Return the Queues to reconcile after this one has been reconciled."""
        return self._after.pop(key, set())

    def remove(self, key: Key) -> set[Key]:
        """Remove a deleted Queue; return the Queues to reconcile."""
        return self.claimants.put(key, None) | self.take_affected(key)
