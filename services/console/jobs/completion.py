"""Complete jobs: read the final count, publish the result, and write the audit log, with retries."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from services.console.audit.audit import DONE, Audit
from services.console.jobs.job import ENDED, Job, State
from services.console.jobs.job_board import SharedJobs
from services.console.jobs.progress import StoredProgress
from services.store import StoreError

COMPLETION_S = 2.0  # what callers that wait for a job's end wait for the store
RETRY_S = 1.0


class Completion:
    """Completes jobs."""

    def __init__(self, shared: SharedJobs, audit: Audit) -> None:
        self._shared = shared
        self._audit = audit

    async def end(self, job: Job, progress: StoredProgress | None, state: State) -> None:
        """Complete a job; return once all consoles can see the result.

        `job.ended` is set earlier if the store is unavailable.
        """
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(COMPLETION_S):
                await _recount(job, progress)
        job.end(state)
        is_published = False
        with suppress(TimeoutError):
            async with asyncio.timeout(COMPLETION_S):
                is_published = await self._publish(job, progress)
        if is_published:
            await self._write_audit(job)
        job.ended.set()
        if not is_published:
            await self._publish_later(job, progress)

    async def _publish_later(self, job: Job, progress: StoredProgress | None) -> None:
        """Retry until the store is back, then write the audit log; also if this process stops before."""
        is_published = False
        try:
            while not is_published:
                await asyncio.sleep(RETRY_S)
                is_published = await self._publish(job, progress)
        finally:
            await self._write_audit(job)

    async def _publish(self, job: Job, progress: StoredProgress | None) -> bool:
        try:
            await _recount(job, progress)
            await self._shared.end(job)
            if progress is not None:
                await progress.forget()
        except StoreError:
            return False
        return True

    async def _write_audit(self, job: Job) -> None:
        detail = {"job": job.id, "moved": job.moved, "missing": job.missing, "matched": job.matched}
        outcome = DONE if job.state is State.DONE else job.state.value
        await self._audit.write(job.by, ENDED[job.kind], job.queue.name, outcome, detail)


async def _recount(job: Job, progress: StoredProgress | None) -> None:
    """Add what steps moved whose responses were lost. Raises StoreError."""
    if progress is not None:
        job.moved = max(job.moved, await progress.moved())
