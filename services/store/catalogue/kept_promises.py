"""What the store was found to be able to promise: written down at its set-up, looked up for each queue."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace

from redis.exceptions import RedisError

from services.store.catalogue.registry import Registry
from services.store.model.errors import NotInitialised
from services.store.redis.connect import Connector, parse_info
from services.store.redis.link import explain
from services.store.redis.probe import Promises, probe

FRESH_S = 1.0  # a queue is opened by promises that are no older


class KeptPromises:
    """Of one store."""

    def __init__(self, connector: Connector, registry: Registry) -> None:
        self._connector = connector
        self._registry = registry
        self._found: Promises | None = None  # at
        self._found_at = 0.0

    async def now(self) -> Promises:
        """Return what was written down, with the replicas that the store has now, as they come and go.

        Raises NotInitialised before the store was set up.
        """
        promises = await self._written_down()
        if not promises.fails_over:
            return promises
        info = await self._registry.link.call("INFO", "replication")
        live = int(parse_info(info).get("connected_slaves", "0"))
        return replace(promises, replicas=live, usual_replicas=promises.replicas)

    async def lately(self) -> Promises:
        """Return the same, a second old at most."""
        now = time.monotonic()
        if self._found is None or now - self._found_at > FRESH_S:
            self._found, self._found_at = await self.now(), now
        return self._found

    def look_again(self) -> None:
        """Look again the next time: what the store can promise may have changed."""
        self._found = None

    async def probe(self) -> Promises:
        """Ask the store's servers. Needs an administrator's rights."""
        try:
            return await probe(self._connector)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error

    async def raise_levels(self) -> bool:
        """Write down ack levels that the store keeps by now and did not when it was set up; return if there are any.

        No level is taken back, as a replica may be away for a moment. Needs an administrator's rights.
        """
        believed, found = await self._written_down(), await self.probe()
        has_more = set(believed.levels()) < set(found.levels())
        if has_more:
            await self.write_down(found)
        return has_more

    async def write_down(self, promises: Promises) -> None:
        """Keep what was found. Replicas that were there once are counted on: they may be away for a moment."""
        if promises.fails_over:
            with suppress(NotInitialised):
                before = (await self._written_down()).replicas
                promises = replace(promises, replicas=max(before, promises.replicas))
        await self._registry.link.call("SET", self._registry.keys.promises, json.dumps(promises.to_json()))
        self.look_again()

    async def _written_down(self) -> Promises:
        found = await self._registry.link.call("GET", self._registry.keys.promises)
        if found is None:
            raise NotInitialised
        return Promises(**json.loads(found))
