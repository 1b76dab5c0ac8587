"""Cache the durability guarantees of the store, which its setup probes and records."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace

from redis.exceptions import RedisError

from services.store.catalogue.registry import Registry
from services.store.model.ack_levels import Promises
from services.store.model.errors import NotInitialised
from services.store.redis.connect import Connector, parse_info
from services.store.redis.link import explain
from services.store.redis.probe import probe

FRESH_S = 1.0  # maximum age of the guarantees that a queue is opened with


class KeptPromises:
    """The recorded guarantees of one store."""

    def __init__(self, connector: Connector, registry: Registry) -> None:
        self._connector = connector
        self._registry = registry
        self._found: Promises | None = None
        self._found_at = 0.0

    async def now(self) -> Promises:
        """Return the recorded guarantees, with the current number of replicas. Raises NotInitialised."""
        promises = await self._written_down()
        if not promises.fails_over:
            return promises
        info = await self._registry.link.call("INFO", "replication")
        live = int(parse_info(info).get("connected_slaves", "0"))
        return replace(promises, replicas=live, usual_replicas=promises.replicas)

    async def lately(self) -> Promises:
        """Return the guarantees from the cache, at most a second old. Raises NotInitialised."""
        now = time.monotonic()
        if self._found is None or now - self._found_at > FRESH_S:
            self._found, self._found_at = await self.now(), now
        return self._found

    def invalidate(self) -> None:
        """Invalidate the cache, as the guarantees may have changed."""
        self._found = None

    async def probe(self) -> Promises:
        """Probe the store's servers. Needs an administrator's rights."""
        try:
            return await probe(self._connector)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error

    async def raise_levels(self) -> bool:
        """Record ack levels that the store can guarantee now and could not at setup; return whether there are any.

        Levels are never removed, as a replica may be away for a moment. Needs an administrator's rights.
        """
        believed, found = await self._written_down(), await self.probe()
        has_more = set(believed.levels()) < set(found.levels())
        if has_more:
            await self.write_down(found)
        return has_more

    async def write_down(self, promises: Promises) -> None:
        """Record guarantees. The number of replicas is never reduced, as a replica may be away for a moment."""
        if promises.fails_over:
            with suppress(NotInitialised):
                before = (await self._written_down()).replicas
                promises = replace(promises, replicas=max(before, promises.replicas))
        await self._registry.link.call("SET", self._registry.keys.promises, json.dumps(promises.to_json()))
        self.invalidate()

    async def _written_down(self) -> Promises:
        found = await self._registry.link.call("GET", self._registry.keys.promises)
        if found is None:
            raise NotInitialised
        return Promises(**json.loads(found))
