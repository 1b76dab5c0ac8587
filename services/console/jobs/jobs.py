"""Run jobs: redrives, purges and emptied queues.

A job belongs to the process that started it. If that stops, what was moved stays moved, and repeating the request
continues with the rest. While the store is unavailable, jobs wait for it. All consoles of a store list all jobs,
and can cancel them (job_board.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from services.console.audit.audit import Audit
from services.console.contract.problems import Problem
from services.console.jobs.completion import Completion
from services.console.jobs.job import Job, JobDocument, Kind, State, place_of
from services.console.jobs.job_board import MAX_ENDED, ORPHANED, PUBLISH_S, SharedJobs
from services.console.jobs.orphaned_jobs import OrphanedJobs
from services.console.jobs.progress import stored_progress
from services.store import DeadLetters, Filter, Store, StoreError, StoreUnavailable
from services.store.catalogue import JobBoard
from services.store.deadletters import PAGE, Pace, PurgeProgress, QueuePurge, RedriveResult, redrive_steps
from services.store.model import DatasetLost, OutcomeUnknown

log = logging.getLogger(__name__)

MAX_RUNNING = 20
RETRY_S = 1.0  # while the store is unavailable
CLOSE_S = 2.0  # for publishing results when the process stops
REMOTE_CANCEL_S = 10.0  # for another console to cancel its job
REVIVE_S = 3.0  # for a console that can reach the store again to publish its jobs


class Jobs:
    """The jobs of this process, and what other consoles publish of theirs."""

    def __init__(self, store: Store, audit: Audit, touched: Callable[[str], None]) -> None:
        """touched: called with the names of changed queues."""
        self._store = store
        self._touched = touched
        self._shared = SharedJobs(JobBoard(store.registry))
        self._completion = Completion(self._shared, audit)
        self.orphans = OrphanedJobs(store, self._shared)
        self._jobs: dict[str, Job] = {}
        self._starting = 0

    # for requests

    async def start(self, job: Job) -> Job:
        """Start a job. Raises Problem if there are too many, StoreError; then it does not run."""
        if len(self.running()) + self._starting >= MAX_RUNNING:
            text = f"{MAX_RUNNING} jobs are running: wait for one, or cancel one"
            raise Problem(429, "too_many_jobs", text, headers={"Retry-After": "10"})
        self._starting += 1  # before the first await, so that concurrent requests count it
        try:
            # leave out what dies from now on, else a dead letter that dies again would be moved repeatedly; by
            # the clock that sets times of death, which in a Cluster may differ from the catalogue's
            job.wanted = job.wanted.as_of(await self._store.get_domain(job.queue.domain).link.now_ms())
            await self._shared.begin(job)
        finally:
            self._starting -= 1
        self._jobs[job.id] = job
        self._forget_old()
        job.task = asyncio.create_task(self._run(job), name=f"console job {job.id}")
        return job

    async def poll(self) -> list[JobDocument]:
        """Read and return the jobs of all consoles, newest first; if the store is unavailable, as last read."""
        with suppress(StoreError):
            await self._shared.read()
        return self.documents()

    def documents(self) -> list[JobDocument]:
        """Return the jobs of all consoles as last read, with the current state of this process's."""
        found = {**self._shared.jobs, **{job.id: job.document() for job in self._jobs.values()}}
        return sorted(found.values(), key=place_of, reverse=True)

    def foremost(self, number: int) -> list[JobDocument]:
        """Return all running jobs, then the newest others, up to so many in total."""
        jobs = self.documents()
        running = [job for job in jobs if job["state"] == State.RUNNING]
        ended = [job for job in jobs if job["state"] != State.RUNNING]
        return [*running, *ended[: max(number - len(running), 0)]]

    async def find(self, job_id: str) -> JobDocument:
        """Return a job of any console. Raises Problem 404, StoreError."""
        if job_id in self._jobs:
            return self._jobs[job_id].document()
        found = (await self._shared.read()).get(job_id)
        if found is None:
            raise Problem(404, "job_unknown", f"job {job_id!r} does not exist, or ended too long ago")
        return found

    async def cancel(self, job_id: str) -> JobDocument:
        """Cancel a job, and return it once it has ended. Raises Problem, StoreError."""
        job = self._jobs.get(job_id)
        if job is None:
            return await self._cancel_remote(await self.find(job_id))
        await self._cancel(job)
        return job.document()

    @staticmethod
    async def _cancel(job: Job) -> None:
        if job.task is not None and job.state is State.RUNNING:
            if not job.is_completing:
                job.task.cancel()
            await job.ended.wait()

    async def _cancel_remote(self, job: JobDocument) -> JobDocument:
        """Request cancellation, also of an orphaned job: its console may only have lost the store for long."""
        job_id, revives = job["id"], time.monotonic() + REVIVE_S
        if job["state"] == State.RUNNING or job["error"] == ORPHANED:
            await self._shared.request_cancel(job_id)
        try:
            async with asyncio.timeout(REMOTE_CANCEL_S):
                while job["state"] == State.RUNNING or (
                    job["error"] == ORPHANED and time.monotonic() < revives
                ):
                    await asyncio.sleep(PUBLISH_S / 4)
                    job = await self.find(job_id)
        except TimeoutError:
            text = "cancellation was requested, but the console that runs the job has not confirmed it: check the job"
            raise Problem(504, "no_answer", text) from None
        return job

    def running(self) -> list[Job]:
        """Return the running jobs of this process."""
        return [job for job in self._jobs.values() if job.state is State.RUNNING]

    async def close(self) -> None:
        """Cancel all jobs of this process, and publish their results."""
        for job in self.running():
            job.error = "the console was stopped: repeat the request to continue with the rest"
        await asyncio.gather(*(self._cancel(job) for job in self.running()))
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.task.done()]
        if tasks:
            _, unpublished = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in unpublished:
                text = "result of %s not published: the store is unavailable"
                log.warning(text, task.get_name(), extra={"action": "job_unsaid"})
                task.cancel()
            await asyncio.gather(*unpublished, return_exceptions=True)

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.task is not None and job.task.done()]
        for job_id in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._jobs[job_id]

    # the work

    async def _run(self, job: Job) -> None:
        following = asyncio.create_task(self._follow(job), name=f"console job {job.id}, progress")
        state = await self._outcome(job, self._work(job))
        job.is_completing = True
        following.cancel()  # no progress after the result
        (fault,) = await asyncio.gather(following, return_exceptions=True)
        if isinstance(fault, Exception):
            text = "job progress not published: internal error: %r"
            log.critical(text, fault, exc_info=fault, extra={"action": "job_fault"})
        try:
            await self._completion.end(job, stored_progress(self._store, job.kind, job.queue, job.id), state)
        finally:
            job.ended.set()

    async def _outcome(self, job: Job, work: Callable[[], Awaitable[None]]) -> State:
        try:
            if job.matched is None:
                job.matched = await self._retry(job, lambda: self._count(job))
            await self._retry(job, work)
        except asyncio.CancelledError:
            return State.CANCELLED
        except StoreError as error:
            job.error = str(error)
            return State.FAILED
        except Exception as error:
            job.error = "internal error: see the console's log"
            fields = {"action": "job_fault", "job": job.id}
            log.critical("job failed: internal error: %r", error, exc_info=error, extra=fields)
            return State.FAILED
        return State.DONE

    async def _follow(self, job: Job) -> None:
        await self._shared.follow(job)
        if job.task is not None and not job.is_completing:
            job.task.cancel()

    async def _retry(self, job: Job, work: Callable[[], Awaitable[Any]]) -> Any:
        """Repeat the work while the store is unavailable; each attempt finds what is left."""
        while True:
            try:
                found = await work()
            except DatasetLost:  # permanent
                raise
            except (StoreUnavailable, OutcomeUnknown) as error:
                job.error = f"waiting for the store: {error}"
            else:
                job.error = ""
                return found
            await asyncio.sleep(RETRY_S)

    def _letters(self, job: Job) -> DeadLetters:
        return DeadLetters(self._store.get_domain(job.queue.domain), job.queue)

    async def _count(self, job: Job) -> int:
        if job.wanted == Filter(died_until_ms=job.wanted.died_until_ms):  # no need to read each of them
            return await self._letters(job).count(job.wanted.died_until_ms)
        number = 0
        async for _ in self._letters(job).matching(job.wanted, octets=0):
            number += 1
        return number

    def _work(self, job: Job) -> Callable[[], Awaitable[None]]:
        match job.kind:
            case Kind.REDRIVE:
                return lambda: self._redrive(job)
            case Kind.PURGE:
                return lambda: self._purge(job)
            case Kind.EMPTY:
                # one for all attempts: it keeps the limit even if the store's has expired
                run = QueuePurge(self._store.get_domain(job.queue.domain), job.queue, job.run, job.until)
                return lambda: self._empty(job, run)

    async def _redrive(self, job: Job) -> None:
        letters = self._letters(job)
        steps: AsyncIterator[RedriveResult] = redrive_steps(
            letters, job.wanted, job.target, Pace(job.rate), job.run
        )
        before = job.moved = max(job.moved, await letters.moved_by(job.run))
        async with aclosing(steps):  # type: ignore[type-var]
            async for step in steps:
                before += step.moved
                job.moved, job.missing = before, job.missing + step.missing
                self._touched(job.queue.name)
                self._touched(job.target.name)
                if step.stopped is not None:
                    raise step.stopped

    async def _purge(self, job: Job) -> None:
        letters = self._letters(job)
        async for page in letters.pages(job.wanted, PAGE):
            gone = await letters.purge(page)
            job.moved, job.missing = job.moved + gone, job.missing + len(page) - gone
            self._touched(job.queue.name)

    async def _empty(self, job: Job, run: QueuePurge) -> None:
        steps: AsyncIterator[PurgeProgress] = run.steps()
        async with aclosing(steps):  # type: ignore[type-var]
            async for step in steps:
                job.moved = max(job.moved, step.messages)
                self._touched(job.queue.name)
