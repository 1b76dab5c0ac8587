"""What edges do for the store beside their work: documents are followed, queues tidied, the dead swept.

Every edge process does all of it; the functions keep them out of each other's way.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Protocol

from redis.exceptions import RedisError

from services.store.catalogue.catalogue import Catalogue
from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.kept_promises import KeptPromises
from services.store.catalogue.listing import Listing
from services.store.catalogue.registry import EVERYTHING, Registry
from services.store.model.errors import QueueUnknown, QueueUnreadable, StoreError, StoreUnavailable
from services.store.model.names import decode_name
from services.store.pipeline.domains import Domains
from services.store.redis.connect import Connector

log = logging.getLogger(__name__)

REFRESH_S = 30.0  # documents are read again this often, should a notice have been lost
AGAIN_S = 1.0


class Tended(Protocol):
    """The parts of a store that need care."""

    connector: Connector
    registry: Registry
    domains: Domains
    setup: DomainSetup
    promises: KeptPromises
    catalogue: Catalogue
    listing: Listing


class Caretaker:
    """`start` once; until `close` it looks after all that the catalogue names."""

    def __init__(self, store: Tended, upkeep_s: float) -> None:
        self._store = store
        self._upkeep_s = upkeep_s
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, domain: str) -> None:
        """domain: where this process makes queues; it is set up if nobody has done it yet."""
        work = {"domain": self._prepare(domain), "changes": self._follow(), "upkeep": self._tidy_for_ever()}
        self._tasks = [asyncio.create_task(job, name=f"store {name}") for name, job in work.items()]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _prepare(self, domain: str) -> None:
        while True:
            try:
                await self._store.setup.prepare(domain)
            except StoreError as error:
                log.debug("no domain yet: %s", error, extra={"action": "domain_waits", "domain": domain})
                await asyncio.sleep(AGAIN_S)
            else:
                return

    # upkeep

    async def _tidy_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._upkeep_s * random.uniform(0.8, 1.2))
            try:
                await self.tidy_all()
            except StoreError as error:
                log.info("no upkeep: %s", error, extra={"action": "upkeep_failed"})

    async def tidy_all(self) -> None:
        """Do one step of upkeep for every queue of the catalogue.

        The queues of a domain that cannot be reached are left out until the next time; those of others are not.
        """
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
                log.info("upkeep failed: %s", error, extra=fields)

    # news

    async def _follow(self) -> None:
        """Documents change while edges run: their handles follow."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError, TimeoutError, StoreError) as error:
                log.debug("no news from the store: %s", error, extra={"action": "changes_lost"})
            await asyncio.sleep(AGAIN_S)

    async def _listen(self) -> None:
        keys = self._store.registry.keys
        connection = await self._store.connector.connect(keys.epoch)
        try:
            await connection.send_command("SUBSCRIBE", keys.changes)
            await connection.read_response(disable_decoding=True)
            self._store.catalogue.numbers.follow(True)
            message = None  # from here on nothing is missed; what was told before may have been
            while True:
                await self._changed(EVERYTHING if message is None else decode_name(message[2]))
                message = await connection.read_response(disable_decoding=True, timeout=REFRESH_S)
        finally:
            self._store.catalogue.numbers.follow(False)
            await connection.disconnect(nowait=True)

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
        except QueueUnreadable as error:  # who has it goes on as before
            self._store.listing.complain(name, str(error))
        except QueueUnknown:
            self._store.catalogue.forget(name)
