"""The end of a job: what it did is counted once more, and everybody is told, however long the store is away."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from services.console.audit import DONE, Audit
from services.console.job import Job, Kind, State
from services.console.posting import Posting
from services.store import DeadLetters, StoreError

AT_THE_END_S = 2.0  # whoever waits for the end of a job does not wait any longer for the store
AGAIN_S = 1.0  # before a store that was away is told again


class Ending:
    def __init__(self, posting: Posting, audit: Audit) -> None:
        self._posting = posting
        self._audit = audit

    async def end(self, job: Job, letters: DeadLetters, state: State) -> None:
        """Returns when all consoles can know of it; `job.ended` is set before, if the store is away."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(AT_THE_END_S):
                await _recount(job, letters)
        job.end(state)
        is_said = False
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_THE_END_S):
                is_said = await self._say(job, letters)
        if is_said:
            await self._write_down(job)
        job.ended.set()
        if not is_said:
            await self._say_later(job, letters)

    async def _say_later(self, job: Job, letters: DeadLetters) -> None:
        """Its line in the audit log says what the store says then, and is there also if this process ends before."""
        is_said = False
        try:
            while not is_said:
                await asyncio.sleep(AGAIN_S)
                is_said = await self._say(job, letters)
        finally:
            await self._write_down(job)

    async def _say(self, job: Job, letters: DeadLetters) -> bool:
        try:
            await _recount(job, letters)
            await self._posting.end(job)
            if job.kind is Kind.REDRIVE:
                await letters.forget_run(job.run)
        except StoreError:
            return False
        return True

    async def _write_down(self, job: Job) -> None:
        detail = {"job": job.id, "moved": job.moved, "missing": job.missing, "matched": job.matched}
        outcome = DONE if job.state is State.DONE else job.state.value
        await self._audit.write(job.by, f"dead.{job.kind}.ended", job.queue.name, outcome, detail)


async def _recount(job: Job, letters: DeadLetters) -> None:
    """What a step did whose answer nobody heard, the store knows. Raises StoreError."""
    if job.kind is Kind.REDRIVE:
        job.moved = max(job.moved, await letters.moved_by(job.run))
