"""Release queues and peers whose resources are gone, so that other resources can claim them.

Other operators on the same store leave queues alone whose owners they cannot see. A release tells them that the
resource was deleted, or that its operator was uninstalled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind
from penstock_operator.documents.declared import owning_key, queue_name
from services.store import Store, StoreError
from services.store.model import Listed, Peer, released

log = logging.getLogger(__name__)

ORPHANS = Key(Kind.QUEUE, "", "")  # the work queue's key for the release of orphans


class OrphanRelease:
    """The release of orphans. knows: whether a namespace's Queues were listed. alone: locks the key of a Queue."""

    def __init__(
        self,
        store: Store,
        mirror: Mirror,
        knows: Callable[[str], bool],
        alone: Callable[[Key], AbstractAsyncContextManager[None]],
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._knows = knows
        self._alone = alone

    async def reconcile(self) -> bool:
        """Release all orphaned queues; return False if the store was unavailable."""
        try:
            left = [one async for one in self._store.registry.listed() if self._is_orphaned(one)]
            for one in left:
                await self._release(one)
        except StoreError:
            return False
        return True

    def _is_orphaned(self, one: Listed) -> bool:
        """Return whether the resource was deleted, or now declares another queue."""
        found = owning_key(one.owner)
        if found is None or not self._knows(found[0]):
            return False
        resource = self._mirror.get(Key(Kind.QUEUE, *found))
        return resource is None or queue_name(resource) != one.name

    async def _release(self, one: Listed) -> None:
        found = owning_key(one.owner)
        assert found is not None
        async with self._alone(Key(Kind.QUEUE, *found)):
            if self._is_orphaned(one) and await self._store.catalogue.release(one):
                fields = {"action": "queue_released", "queue": one.name, "owner": one.owner}
                log.info("queue %r was released: its resource was deleted", one.name, extra=fields)


async def release_all(store: Store, watched: tuple[str, ...], discoverer: str) -> None:
    """Release all queues and declared peers of an operator, and delete its discovered peers. Raises StoreError.

    watched: namespaces, () = all.
    """

    def is_ours(owner: str) -> bool:
        found = owning_key(owner)
        return found is not None and (not watched or found[0] in watched)

    async for one in store.registry.listed():
        if is_ours(one.owner):
            await store.catalogue.release(one)
    for peer in await store.peers.all():
        if peer.owner == discoverer:
            await store.peers.delete(peer.name)
        elif isinstance(peer, Peer) and is_ours(peer.owner):
            await store.peers.apply(peer.name, peer.spec, released(peer.owner))
