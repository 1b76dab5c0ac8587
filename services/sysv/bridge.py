"""All mappings of one process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from services.kit.metrics import Metrics
from services.kit.readiness import Readiness
from services.store import Store, StoreUnavailable
from services.sysv.claim import Claim
from services.sysv.condition import Condition, Figures
from services.sysv.inbound import Inbound
from services.sysv.journal import Journal
from services.sysv.journal_file import JournalError
from services.sysv.kernel import READ, WRITE, Gone, LocalQueue, LocalQueueError, msgmax
from services.sysv.loops import find_loop
from services.sysv.outbound import Outbound
from services.sysv.settings import LARGEST_BODY, Direction, SysvSettings, format_key
from services.sysv.settings import Mapping as SysvMapping

log = logging.getLogger(__name__)

AGAIN_S = 1.0
LAST_WORK_S = 5.0  # what is under way may take so long at the end; then it stays in its journal, or goes back
LAST_WORDS_S = 0.5  # for the store to be told that, if it was too long


class Unusable(Exception):
    """The mappings cannot be run as they are; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Bridge:
    """`open`, which says what is wrong; then `start`; at the end `stop_taking` and `close`."""

    def __init__(self, settings: SysvSettings, store: Store, metrics: Metrics) -> None:
        self._settings = settings
        self._store = store
        self._metrics = metrics
        self._figures = Figures(metrics)
        self.readiness = Readiness(store=self._store_fault)
        self._locals: dict[str, LocalQueue] = {}
        self._claims: list[Claim] = []
        self._journals: list[Journal] = []
        self._workers: list[Inbound | Outbound] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._ends_at = 0.0

    # the start

    async def open(self) -> None:
        """Waits for the store. Raises Unusable, QueueUnknown."""
        if not self._settings.mappings:
            raise Unusable("no_mappings", "there is nothing to join: name mappings in `sysv.mappings`")
        await self._check()
        for name, mapping in self._settings.mappings.items():
            try:
                self._add(name, mapping)
            except (LocalQueueError, JournalError) as error:
                raise Unusable(error.reason, f"mapping {name}: {error}") from None

    async def _check(self) -> None:
        """Every queue is there, and nothing goes round. Raises Unusable, QueueUnknown."""
        told = False
        while True:
            try:
                for mapping in self._settings.mappings.values():
                    await self._store.catalogue.find(mapping.queue)
                loop = find_loop(
                    self._settings.mappings, [queue async for queue in self._store.listing.queues()]
                )
            except StoreUnavailable as error:
                if not told:
                    log.warning("waiting for the store: %s", error, extra={"action": "sysv_waits_for_store"})
                told = True
                await asyncio.sleep(AGAIN_S)
            else:
                break
        if loop is not None:
            raise Unusable("loop", f"messages would go round for ever: {loop}")

    def _add(self, name: str, mapping: SysvMapping) -> None:
        """Raises LocalQueueError, JournalError."""
        rights = WRITE if mapping.direction is Direction.IN else READ
        local = LocalQueue(mapping.key, rights, mapping.permissions, create=mapping.create)
        local.open()
        self._locals[name] = local
        condition = Condition(name, self._figures)
        waits = (self._settings.idle_s, self._settings.retry_s)
        if mapping.direction is Direction.IN:
            self._workers.append(Inbound(mapping, local, self._store, condition, *waits))
            return
        self._claims.append(Claim(mapping.key))
        journal = Journal(self._settings.journal / f"{format_key(mapping.key)}.journal")
        self._journals.append(journal)
        journal.open(min(msgmax(), LARGEST_BODY))
        self._workers.append(Outbound(mapping, local, journal, self._store, condition, *waits))

    def start(self) -> None:
        names = [*self._settings.mappings]
        for name, worker in zip(names, self._workers, strict=True):
            self.tasks.append(asyncio.create_task(self._keep_running(worker), name=f"sysv {name}"))
        log.info("%d mappings", len(names), extra={"action": "sysv_started", "mappings": len(names)})

    async def _keep_running(self, worker: Inbound | Outbound) -> None:
        """A fault of ours is told and counted; then it begins again where journal and leases say (2.7, 3.8)."""
        while True:
            try:
                await worker.run()
            except Exception as error:  # noqa: BLE001 - the top of a mapping
                worker.condition.failed(error, worker.at_hand)
                await asyncio.sleep(AGAIN_S)
            else:
                return

    # while it runs

    def _store_fault(self) -> str | None:
        """Return why a domain that mappings use, or that of the catalogue, cannot be used now, or None."""
        faults = (self._store.fault_of(domain.name) for domain in self._store.domains.all())
        return next((fault for fault in faults if fault is not None), None)

    # the end

    async def stop_taking(self) -> None:
        """What is under way comes to its end, if that does not take long."""
        self._ends_at = time.monotonic() + LAST_WORK_S
        for worker in self._workers:
            worker.stop_taking()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=LAST_WORK_S)

    async def close(self) -> None:
        """What did not come to its end stays in its journal, or goes back."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for journal in self._journals:
            journal.close()
        for claim in self._claims:
            claim.close()
        if self._settings.remove_on_exit:
            remove_ours(self._locals)
        await self._store.close(max(LAST_WORDS_S, self._ends_at - time.monotonic()))


def remove_ours(queues: Mapping[str, LocalQueue]) -> None:
    """Those that we have made; what was still in them is told, for nobody can get it any more."""
    for name, local in queues.items():
        if not local.is_ours:
            continue
        fields = {"action": "sysv_removed", "mapping": name}
        try:
            left = local.waiting()
            local.remove()
        except Gone:
            continue
        except LocalQueueError as error:
            log.warning("a local queue was not removed: %s", error, extra=fields)
        else:
            level = logging.WARNING if left else logging.INFO
            log.log(level, "local queue removed with %d messages", left, extra={**fields, "messages": left})
