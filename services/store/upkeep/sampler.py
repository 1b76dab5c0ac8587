"""Write samples of this process's activity to the store every few seconds: one per queue, and one of the process.

Samples that cannot be written are written later, also if the store has no memory: error budgets need the refusals of
that time. Counts are read out of the tallies and put back if the store certainly did not store their page. A page
whose reply was lost is repeated unchanged before newer ones of its domain; readers identify it by process, `n` and
queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time

from services.store.model.clock import now
from services.store.model.errors import OutcomeUnknown, StoreError
from services.store.pipeline.domain import Domain
from services.store.pipeline.domains import Domains
from services.store.pipeline.tallies import Tally
from services.store.upkeep.process_counters import EdgeTally, ProcessCounters, Shell
from services.store.upkeep.samples import Sample, Writer

log = logging.getLogger(__name__)

PAGE = 100  # samples per call, so that other calls do not wait long
FLUSH_TIMEOUT_S = 1.0

Page = list[tuple[Sample, Tally | EdgeTally]]


class Sampler:
    """A writer of samples every `sample_s` seconds, with jitter, from `start` until `stop`."""

    def __init__(self, edge: str, domains: Domains, sample_s: float, kept: int, shell: Shell | None) -> None:
        """Keep about `kept` samples per domain. shell: None for a process without connections."""
        self._domains = domains
        self._sample_s = sample_s
        self._kept = kept
        self._writer = Writer(edge)
        self._ourselves = ProcessCounters(shell, time.monotonic())
        self._home = ""
        self._in_doubt: dict[str, Page] = {}  # by domain: the page whose reply was lost
        self._task: asyncio.Task[None] | None = None

    def start(self, domain: str) -> None:
        """Start to write. domain: where the samples of the process itself are written."""
        self._home = domain
        self._task = asyncio.create_task(self._write_for_ever(), name="store samples")

    async def stop(self) -> None:
        """Write no more samples until `flush`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def flush(self) -> None:
        """Write the last samples, after `stop` and when all operations are done."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self.write()

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._sample_s * random.uniform(0.9, 1.1))
            await self.write()

    async def write(self) -> None:
        """Write samples of the activity since the last call to all domains. Calls must not overlap."""
        self._writer.number += 1
        for domain in self._domains.all():
            try:
                await self._write(domain)
            except StoreError as error:
                fields = {"action": "samples_failed", "domain": domain.name}
                log.info("samples could not be written now; they are kept: %s", error, extra=fields)

    async def _write(self, domain: Domain) -> None:
        if (page := self._in_doubt.get(domain.name)) is not None:
            await self._send(domain, page)
            del self._in_doubt[domain.name]
        rest = self._read(domain, time.monotonic())
        while rest:
            page, rest = rest[:PAGE], rest[PAGE:]
            try:
                await self._send(domain, page)
            except (OutcomeUnknown, asyncio.CancelledError):
                self._in_doubt[domain.name] = page
                self._put_back(domain, rest)
                raise
            except StoreError:
                self._put_back(domain, page + rest)
                raise

    def _read(self, domain: Domain, now: float) -> Page:
        """Read the tallies for the domain, with their samples."""
        found: list[Tally | EdgeTally] = []
        for tally in domain.tallies.read(now):
            if tally.name:
                found.append(tally)
            else:
                self._ourselves.refuse(tally.refused)
        if domain.name == self._home:
            found.append(self._ourselves.read(now))
        return [(self._writer.write(tally, now), tally) for tally in found]

    async def _send(self, domain: Domain, page: Page) -> None:
        """Write one page of samples. Raises OutcomeUnknown if the reply was lost."""
        args = [value for sample, _ in page for value in (len(sample), *sample)]
        asked = now()
        now_ms = await domain.function("sample", [domain.keys.samples], self._kept, *args)
        domain.pipe.clock.heard(int(now_ms), asked)

    def _put_back(self, domain: Domain, page: Page) -> None:
        """Put back the tallies of a page that was certainly not stored."""
        domain.tallies.put_back([tally for _, tally in page if isinstance(tally, Tally)])
        for _, tally in page:
            if isinstance(tally, EdgeTally):
                self._ourselves.put_back(tally)
