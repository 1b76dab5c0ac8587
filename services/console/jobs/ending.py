"""The end of a job: what it did is counted once more, and everybody is told, however long the store is away."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from services.console.audit.audit import DONE, Audit
from services.console.jobs.counted import Counted
from services.console.jobs.job import ENDED, Job, State
from services.console.jobs.posting import Posting
from services.store import StoreError

AT_THE_END_S = 2.0  # whoever waits for the end of a job does not wait any longer for the store
AGAIN_S = 1.0  # before a store that was away is told again


class Ending:
    def __init__(self, posting: Posting, audit: Audit) -> None:
        self._posting = posting
        self._audit = audit

    async def end(self, job: Job, told: Counted | None, state: State) -> None:
        """Returns when all consoles can know of it; `job.ended` is set before, if the store is away.

        told: what the store counts of it.
        """
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(AT_THE_END_S):
                await _recount(job, told)
        job.end(state)
        is_said = False
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_THE_END_S):
                is_said = await self._say(job, told)
        if is_said:
            await self._write_down(job)
        job.ended.set()
        if not is_said:
            await self._say_later(job, told)

    async def _say_later(self, job: Job, told: Counted | None) -> None:
        """Its line in the audit log says what the store says then, and is there also if this process ends before."""
        is_said = False
        try:
            while not is_said:
                await asyncio.sleep(AGAIN_S)
                is_said = await self._say(job, told)
        finally:
            await self._write_down(job)

    async def _say(self, job: Job, told: Counted | None) -> bool:
        try:
            await _recount(job, told)
            await self._posting.end(job)
            if told is not None:
                await told.forget()
        except StoreError:
            return False
        return True

    async def _write_down(self, job: Job) -> None:
        detail = {"job": job.id, "moved": job.moved, "missing": job.missing, "matched": job.matched}
        outcome = DONE if job.state is State.DONE else job.state.value
        await self._audit.write(job.by, ENDED[job.kind], job.queue.name, outcome, detail)


async def _recount(job: Job, told: Counted | None) -> None:
    """What a step did whose answer nobody heard, the store knows. Raises StoreError."""
    if told is not None:
        job.moved = max(job.moved, await told.moved())
