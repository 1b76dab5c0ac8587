"""Background work of edges for the store: follow changes of documents, and tidy queues.

Every edge process does all of it; the store's functions coordinate them.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Protocol

from redis.exceptions import RedisError

from services.store.catalogue.catalogue import Catalogue
from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.durability_guarantees import KeptPromises
from services.store.catalogue.listing import Listing
from services.store.catalogue.registry import EVERYTHING, Registry
from services.store.model.errors import QueueUnknown, QueueUnreadable, StoreError, StoreUnavailable
from services.store.model.names import decode_name
from services.store.pipeline.domains import Domains
from services.store.redis.connect import Connector
from services.store.redis.subscription import subscribed

log = logging.getLogger(__name__)

REFRESH_S = 30.0  # documents are read again this often, as notices may be lost
RETRY_S = 1.0


class Tended(Protocol):
    """The parts of a store that the caretaker uses."""

    connector: Connector
    registry: Registry
    domains: Domains
    setup: DomainSetup
    promises: KeptPromises
    catalogue: Catalogue
    listing: Listing


class Caretaker:
    """Background work for all queues of the catalogue, from `start` until `close`."""

    def __init__(self, store: Tended, upkeep_s: float) -> None:
        self._store = store
        self._upkeep_s = upkeep_s
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, domain: str) -> None:
        """Start the work. domain: where this process creates queues; it is set up if it is new."""
        work = {"domain": self._prepare(domain), "changes": self._follow(), "upkeep": self._tidy_for_ever()}
        self._tasks = [asyncio.create_task(job, name=f"store {name}") for name, job in work.items()]

    async def close(self) -> None:
        """Stop the work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _prepare(self, domain: str) -> None:
        while True:
            try:
                await self._store.setup.prepare(domain)
            except StoreError as error:
                fields = {"action": "domain_waits", "domain": domain}
                log.debug("the domain could not be set up yet: %s", error, extra=fields)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _tidy_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._upkeep_s * random.uniform(0.8, 1.2))
            try:
                await self.tidy_all()
            except StoreError as error:
                fields = {"action": "upkeep_failed"}
                log.info("upkeep failed; it will be retried: %s", error, extra=fields)

    async def tidy_all(self) -> None:
        """Do one step of upkeep for every queue of the catalogue, except queues of unreachable domains."""
        unreachable: set[str] = set()
        async for queue in self._store.listing.queues():
            if queue.domain in unreachable:
                continue
            try:
                await self._store.domains.get(queue.domain).tidy(queue)
            except StoreError as error:
                if isinstance(error, StoreUnavailable):
                    unreachable.add(queue.domain)
                fields = {"action": "upkeep_failed", "queue": queue.name, "domain": queue.domain}
                log.info("upkeep of a queue failed: %s", error, extra=fields)

    async def _follow(self) -> None:
        """Update the queues in use when their documents change."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError, TimeoutError, StoreError) as error:
                fields = {"action": "changes_lost"}
                log.debug("notices of changes lost; queue documents may be stale: %s", error, extra=fields)
            await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        keys, catalogue = self._store.registry.keys, self._store.catalogue
        async with subscribed(self._store.connector, keys.epoch, keys.changes) as connection:
            catalogue.numbers.follow(True)
            try:
                message = None  # begin with everything, as earlier notices were missed
                while True:
                    await self._changed(EVERYTHING if message is None else decode_name(message[2]))
                    message = await connection.read_response(disable_decoding=True, timeout=REFRESH_S)
            finally:
                catalogue.numbers.follow(False)

    async def _changed(self, name: str) -> None:
        self._store.catalogue.numbers.changed()
        if name == EVERYTHING:
            self._store.promises.invalidate()
        for known in {queue.name for queue in self._store.catalogue.known()}:
            if name in (EVERYTHING, known):
                await self._refresh(known)
        self._store.catalogue.changed(name)

    async def _refresh(self, name: str) -> None:
        try:
            await self._store.catalogue.find(name)
        except StoreUnavailable:
            return
        except QueueUnreadable as error:  # it is used as before
            self._store.listing.complain(name, str(error))
        except QueueUnknown:
            self._store.catalogue.forget(name)
