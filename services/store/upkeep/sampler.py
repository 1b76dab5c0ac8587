"""Tells the store every few seconds what this process has done: one sample a queue, and one of the process itself.

What cannot be told is told later, also what the store does not write for want of memory: which puts it refused then is
what an error budget is about. A look is read out of the tallies; pages of it that the store has certainly not taken
go back into them. A page whose answer was lost is sent again as it is, before anything newer of its domain: readers
know it by process, `n` and queue.
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

PAGE = 100  # samples in one call: nobody waits long for it
LAST_S = 1.0  # the last look, when the process ends, takes no longer

Page = list[tuple[Sample, Tally | EdgeTally]]


class Sampler:
    """`start` once; until `stop` it looks every `sample_s`, more or less: not all processes at once."""

    def __init__(self, edge: str, domains: Domains, sample_s: float, kept: int, shell: Shell | None) -> None:
        """kept: how many samples a domain keeps, some more for a while. shell: None where nobody connects."""
        self._domains = domains
        self._sample_s = sample_s
        self._kept = kept
        self._writer = Writer(edge)
        self._ourselves = ProcessCounters(shell, time.monotonic())
        self._home = ""
        self._in_doubt: dict[str, Page] = {}  # of each domain the page whose answer was lost
        self._task: asyncio.Task[None] | None = None

    def start(self, domain: str) -> None:
        """domain: where what is told of the process itself stands."""
        self._home = domain
        self._task = asyncio.create_task(self._look_for_ever(), name="store samples")

    async def stop(self) -> None:
        """Until `flush`, what is done is only counted."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def flush(self) -> None:
        """The last look, once nothing is under way any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self.look()

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._sample_s * random.uniform(0.9, 1.1))
            await self.look()

    async def look(self) -> None:
        """Tells all domains what came since the last time. Not to be called by two at once."""
        self._writer.look += 1
        for domain in self._domains.all():
            try:
                await self._tell(domain)
            except StoreError as error:
                fields = {"action": "samples_failed", "domain": domain.name}
                log.info("no samples: %s", error, extra=fields)

    async def _tell(self, domain: Domain) -> None:
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
        """Everything that is to be told."""
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
        """Raises OutcomeUnknown where the answer was lost."""
        args = [value for sample, _ in page for value in (len(sample), *sample)]
        asked = now()
        told = await domain.function("sample", [domain.keys.samples], self._kept, *args)
        domain.pipe.clock.heard(int(told), asked)

    def _put_back(self, domain: Domain, page: Page) -> None:
        """It was certainly not told."""
        domain.tallies.put_back([tally for _, tally in page if isinstance(tally, Tally)])
        for _, tally in page:
            if isinstance(tally, EdgeTally):
                self._ourselves.put_back(tally)
