"""Run all mappings of one process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from services.kit.metrics import Metrics
from services.kit.readiness import Readiness
from services.store import Store, StoreUnavailable
from services.sysv.claim import Claim
from services.sysv.condition import Condition, Counters
from services.sysv.inbound import Inbound
from services.sysv.journal import Journal
from services.sysv.journal_file import JournalError
from services.sysv.kernel import READ, WRITE, LocalQueue, LocalQueueError, Removed, msgmax
from services.sysv.loops import find_loop
from services.sysv.outbound import Outbound
from services.sysv.settings import MAX_BODY, Direction, SysvSettings, format_key
from services.sysv.settings import Mapping as SysvMapping

log = logging.getLogger(__name__)

RETRY_S = 1.0
DRAIN_S = 5.0  # time to finish messages under way; later ones stay in their journal, or are returned
CLOSE_S = 0.5  # minimum time to return messages to the store


class Unusable(Exception):
    """Unusable mappings; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Bridge:
    """All mappings. Call `open`, which checks them, and `start`; at the end `stop_taking` and `close`."""

    def __init__(self, settings: SysvSettings, store: Store, metrics: Metrics) -> None:
        self._settings = settings
        self._store = store
        self._metrics = metrics
        self._counters = Counters(metrics)
        self.readiness = Readiness(store=self._store_fault)
        self._locals: dict[str, LocalQueue] = {}
        self._claims: list[Claim] = []
        self._journals: list[Journal] = []
        self._workers: list[Inbound | Outbound] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._ends_at = 0.0

    # Startup

    async def open(self) -> None:
        """Wait for the store, and open the mappings. Raises Unusable, QueueUnknown."""
        if not self._settings.mappings:
            raise Unusable("no_mappings", "there are no mappings: add some to `sysv.mappings`")
        await self._check()
        for name, mapping in self._settings.mappings.items():
            try:
                self._add(name, mapping)
            except (LocalQueueError, JournalError) as error:
                raise Unusable(error.reason, f"mapping {name}: {error}") from None

    async def _check(self) -> None:
        """Check that every queue exists and that no loop exists. Raises Unusable, QueueUnknown."""
        is_logged = False
        while True:
            try:
                for mapping in self._settings.mappings.values():
                    await self._store.catalogue.find(mapping.queue)
                loop = find_loop(
                    self._settings.mappings, [queue async for queue in self._store.listing.queues()]
                )
            except StoreUnavailable as error:
                if not is_logged:
                    log.warning("waiting for the store: %s", error, extra={"action": "sysv_waits_for_store"})
                is_logged = True
                await asyncio.sleep(RETRY_S)
            else:
                break
        if loop is not None:
            raise Unusable("loop", f"the mappings form a loop: {loop}")

    def _add(self, name: str, mapping: SysvMapping) -> None:
        """Open the local queue of a mapping, and its journal. Raises LocalQueueError, JournalError."""
        rights = WRITE if mapping.direction is Direction.IN else READ
        local = LocalQueue(mapping.key, rights, mapping.permissions, create=mapping.create)
        local.open()
        self._locals[name] = local
        condition = Condition(name, self._counters)
        waits = (self._settings.idle_s, self._settings.retry_s)
        if mapping.direction is Direction.IN:
            self._workers.append(Inbound(mapping, local, self._store, condition, *waits))
            return
        self._claims.append(Claim(mapping.key))
        journal = Journal(self._settings.journal / f"{format_key(mapping.key)}.journal")
        self._journals.append(journal)
        journal.open(min(msgmax(), MAX_BODY))
        self._workers.append(Outbound(mapping, local, journal, self._store, condition, *waits))

    def start(self) -> None:
        """Start carrying messages."""
        names = [*self._settings.mappings]
        for name, worker in zip(names, self._workers, strict=True):
            self.tasks.append(asyncio.create_task(self._keep_running(worker), name=f"sysv {name}"))
        log.info(
            "carrying messages for %d mappings",
            len(names),
            extra={"action": "sysv_started", "mappings": len(names)},
        )

    async def _keep_running(self, worker: Inbound | Outbound) -> None:
        """Run a mapping; after an internal error, continue from its journal or leases (2.7, 3.8)."""
        while True:
            try:
                await worker.run()
            except Exception as error:  # noqa: BLE001 - the top of a mapping
                worker.condition.failed(error, worker.current_message)
                await asyncio.sleep(RETRY_S)
            else:
                return

    def _store_fault(self) -> str | None:
        """Return why a domain that mappings use, or that of the catalogue, cannot be used now, or None."""
        faults = (self._store.fault_of(domain.name) for domain in self._store.domains.all())
        return next((fault for fault in faults if fault is not None), None)

    # Shutdown

    async def stop_taking(self) -> None:
        """Finish messages under way, for up to DRAIN_S."""
        self._ends_at = time.monotonic() + DRAIN_S
        for worker in self._workers:
            worker.stop_taking()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=DRAIN_S)

    async def close(self) -> None:
        """Stop all mappings. Unfinished messages stay in their journal, or are returned to their queue."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for journal in self._journals:
            journal.close()
        for claim in self._claims:
            claim.close()
        if self._settings.remove_on_exit:
            remove_created(self._locals)
        await self._store.close(max(CLOSE_S, self._ends_at - time.monotonic()))


def remove_created(queues: Mapping[str, LocalQueue]) -> None:
    """Remove the local queues that this process created, and log how many messages are lost with them."""
    for name, local in queues.items():
        if not local.is_created:
            continue
        fields = {"action": "sysv_removed", "mapping": name}
        try:
            left = local.waiting()
            local.remove()
        except Removed:
            continue
        except LocalQueueError as error:
            log.warning("a local queue could not be removed: %s", error, extra=fields)
        else:
            level = logging.WARNING if left else logging.INFO
            log.log(level, "local queue removed with %d messages", left, extra={**fields, "messages": left})
