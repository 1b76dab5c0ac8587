"""Redrives and purges under way. They belong to this process: what was moved stays moved when it ends, and the same
request again goes on with what is left. While the store is away they wait for it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from services.console.audit import DONE, Audit
from services.console.identity import Caller
from services.console.moments import moment, moment_or_none
from services.console.problems import Problem
from services.store import DeadLetters, Filter, Queue, Store, StoreError, StoreUnavailable
from services.store.dead import PAGE, Redriven
from services.store.errors import DatasetLost, OutcomeUnknown
from services.store.redriving import Pace, redrive_steps

log = logging.getLogger(__name__)

MOST_RUNNING = 20
KEPT = 200  # jobs that ended, to be looked at
AGAIN_S = 1.0  # before a store that was away is asked again
AT_THE_END_S = 2.0  # for the last questions when a job is cancelled


class Kind(StrEnum):
    REDRIVE = "redrive"
    PURGE = "purge"


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Job:
    """Times are ms since 1970 of the store's clock."""

    kind: Kind
    queue: Queue
    goal: Queue  # of a purge, the queue itself
    by: Caller
    wanted: Filter
    rate: int  # 0: no bound
    began_ms: int
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = State.RUNNING
    matched: int | None = None
    moved: int = 0
    missing: int = 0
    ended_ms: int = 0
    error: str = ""
    task: asyncio.Task[None] | None = None

    @property
    def run(self) -> str:
        """Under which the store counts what is moved, whatever becomes of its answers."""
        return f"console.{self.id}"

    def told(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind.value,
            "queue": self.queue.name,
            "target": self.goal.name if self.kind is Kind.REDRIVE else None,
            "state": self.state.value,
            "matched": self.matched,
            "moved": self.moved,
            "missing": self.missing,
            "startedAt": moment(self.began_ms),
            "endedAt": moment_or_none(self.ended_ms),
            "by": self.by.who,
            "rate": self.rate or None,
            "error": self.error or None,
        }


class Jobs:
    def __init__(self, store: Store, audit: Audit, touched: Callable[[str], None]) -> None:
        """touched: is told the names of queues in which something changed."""
        self._store = store
        self._audit = audit
        self._touched = touched
        self._jobs: dict[str, Job] = {}

    # for who asks

    def start(self, job: Job) -> Job:
        """Raises Problem if there are too many."""
        if len(self.running()) >= MOST_RUNNING:
            text = f"{MOST_RUNNING} jobs are under way: wait for one, or cancel one"
            raise Problem(429, "too_many_jobs", text, headers={"Retry-After": "10"})
        # what dies from now on is not meant: a letter that dies again would be taken again and again
        until = max(1, job.began_ms - job.wanted.older_than_ms)
        job.wanted = replace(job.wanted, older_than_ms=0, died_until_ms=until)
        self._jobs[job.id] = job
        self._forget_old()
        job.task = asyncio.create_task(self._run(job), name=f"console job {job.id}")
        return job

    def find(self, identifier: str) -> Job:
        """Raises Problem 404."""
        found = self._jobs.get(identifier)
        if found is None:
            raise Problem(404, "job_unknown", f"there is no job {identifier!r} in this process")
        return found

    async def cancel(self, job: Job) -> None:
        """Returns when it has ended. One that ended before stays as it is."""
        if job.task is not None and job.state is State.RUNNING:
            job.task.cancel()
            await asyncio.gather(job.task, return_exceptions=True)

    def newest(self) -> list[Job]:
        """The newest first."""
        return list(reversed(self._jobs.values()))

    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.state is State.RUNNING]

    async def close(self) -> None:
        for job in self.running():
            job.error = "the console was ended: the same again goes on with what is left"
        await asyncio.gather(*(self.cancel(job) for job in self.running()))

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.state is not State.RUNNING]
        for identifier in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[identifier]

    # the work

    async def _run(self, job: Job) -> None:
        letters = DeadLetters(self._store.look_at(job.queue.domain), job.queue)
        work = self._redrive if job.kind is Kind.REDRIVE else self._purge
        try:
            job.matched = await self._patiently(job, lambda: self._count(letters, job.wanted))
            await self._patiently(job, lambda: work(job, letters))
            job.state = State.DONE
        except asyncio.CancelledError:
            job.state = State.CANCELLED
        except StoreError as error:
            job.state, job.error = State.FAILED, str(error)
        except Exception as error:
            job.state, job.error = State.FAILED, "a fault of our own: the log says more"
            log.critical(
                "a job failed: %r", error, exc_info=error, extra={"action": "job_fault", "job": job.id}
            )
        await self._end(job, letters)

    async def _patiently(self, job: Job, work: Callable[[], Awaitable[Any]]) -> Any:
        """A store that is away comes back; what is left then is looked for anew."""
        while True:
            try:
                found = await work()
            except DatasetLost:  # waiting does not help
                raise
            except (StoreUnavailable, OutcomeUnknown) as error:
                job.error = f"waits for the store: {error}"
            else:
                job.error = ""
                return found
            await asyncio.sleep(AGAIN_S)

    @staticmethod
    async def _count(letters: DeadLetters, wanted: Filter) -> int:
        number = 0
        async for _ in letters.matching(wanted, octets=0):
            number += 1
        return number

    async def _redrive(self, job: Job, letters: DeadLetters) -> None:
        steps: AsyncIterator[Redriven] = redrive_steps(letters, job.wanted, job.goal, Pace(job.rate), job.run)
        before = job.moved = await letters.moved_by(job.run)
        async with aclosing(steps):  # type: ignore[type-var]
            async for step in steps:
                before += step.moved
                job.moved, job.missing = before, job.missing + step.missing
                self._touched(job.queue.name)
                self._touched(job.goal.name)
                if step.stopped is not None:
                    raise step.stopped

    async def _purge(self, job: Job, letters: DeadLetters) -> None:
        async for page in letters.pages(job.wanted, PAGE):
            gone = await letters.purge(page)
            job.moved, job.missing = job.moved + gone, job.missing + len(page) - gone
            self._touched(job.queue.name)

    async def _end(self, job: Job, letters: DeadLetters) -> None:
        """What a step did whose answer nobody heard, the store knows."""
        job.ended_ms = job.began_ms
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(AT_THE_END_S):
                if job.kind is Kind.REDRIVE:
                    job.moved = max(job.moved, await letters.moved_by(job.run))
                    await letters.forget_run(job.run)
                job.ended_ms = await self._store.now_ms()
        detail = {"job": job.id, "moved": job.moved, "missing": job.missing, "matched": job.matched}
        outcome = DONE if job.state is State.DONE else job.state.value
        await self._audit.write(job.by, f"dead.{job.kind}.ended", job.queue.name, outcome, detail)
