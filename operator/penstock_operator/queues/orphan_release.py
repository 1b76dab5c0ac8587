"""What stays in the store without its resource is nobody's: whoever declares a Queue of its name has it then.

Other operators on the store leave alone what a resource has that they do not see. So they are told when it is gone, or
when nobody is left who sees to it.
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

RETAINED = Key(Kind.QUEUE, "", "")  # what waits to be looked at, whichever Queue went


class Retained:
    """knows: whether all Queues of a namespace are known. alone: nobody else looks at a Queue meanwhile."""

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

    async def look(self) -> bool:
        """Whether the store could be asked."""
        try:
            left = [one async for one in self._store.registry.listed() if self._is_left(one)]
            for one in left:
                await self._let_go(one)
        except StoreError:
            return False
        return True

    def _is_left(self, one: Listed) -> bool:
        """Its resource is gone, or there is another one under its name that declares another queue."""
        found = owning_key(one.owner)
        if found is None or not self._knows(found[0]):
            return False
        resource = self._mirror.get(Key(Kind.QUEUE, *found))
        return resource is None or queue_name(resource) != one.name

    async def _let_go(self, one: Listed) -> None:
        found = owning_key(one.owner)
        assert found is not None
        async with self._alone(Key(Kind.QUEUE, *found)):
            if self._is_left(one) and await self._store.catalogue.release(one):
                fields = {"action": "queue_released", "queue": one.name, "owner": one.owner}
                log.info(
                    "the queue %r stays, and is nobody's now: its resource is gone", one.name, extra=fields
                )


async def let_go_of_all(store: Store, watched: tuple[str, ...], discoverer: str) -> None:
    """At the end of a release, once its operator is gone. Raises StoreError.

    watched: namespaces, () = all. What it found goes; what resources declared stays, and is nobody's.
    """

    def is_of_us(owner: str) -> bool:
        found = owning_key(owner)
        return found is not None and (not watched or found[0] in watched)

    async for one in store.registry.listed():
        if is_of_us(one.owner):
            await store.catalogue.release(one)
    for peer in await store.peers.all():
        if peer.owner == discoverer:
            await store.peers.delete(peer.name)
        elif isinstance(peer, Peer) and is_of_us(peer.owner):
            await store.peers.apply(peer.name, peer.spec, released(peer.owner))
