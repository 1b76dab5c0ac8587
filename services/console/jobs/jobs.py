"""Redrives, purges and emptyings under way. Each is of the process that began it: what was moved stays moved when that
ends, and the same request again goes on with what is left. While the store is away they wait for it. All consoles of a
store tell of all jobs, and may end them (posting.py)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from services.console.audit.audit import Audit
from services.console.contract.problems import Problem
from services.console.jobs.counted import counted
from services.console.jobs.ending import Ending
from services.console.jobs.job import Job, Kind, State, Told, place_of
from services.console.jobs.orphaned_jobs import LostJobs
from services.console.jobs.posting import KEPT, LOST, POST_S, Posting
from services.store import DeadLetters, Filter, Store, StoreError, StoreUnavailable
from services.store.catalogue import JobBoard
from services.store.deadletters import PAGE, Pace, PurgeProgress, QueuePurge, RedriveResult, redrive_steps
from services.store.model import DatasetLost, OutcomeUnknown

log = logging.getLogger(__name__)

MOST_RUNNING = 20
AGAIN_S = 1.0  # before a store that was away is asked again
LAST_S = 2.0  # for jobs that could not say yet how they ended, when the process ends
ELSEWHERE_S = 10.0  # another console's job that was to end has ended by then
REVIVES_S = 3.0  # a console that could not reach the store, and can again, has written of its jobs by then


class Jobs:
    def __init__(self, store: Store, audit: Audit, touched: Callable[[str], None]) -> None:
        """touched: is told the names of queues in which something changed."""
        self._store = store
        self._touched = touched
        self._posting = Posting(JobBoard(store.registry))
        self._ending = Ending(self._posting, audit)
        self.lost = LostJobs(store, self._posting)
        self._jobs: dict[str, Job] = {}
        self._starting = 0

    # for who asks

    async def start(self, job: Job) -> Job:
        """Raises Problem if there are too many, StoreError: then it does not run."""
        if len(self.running()) + self._starting >= MOST_RUNNING:
            text = f"{MOST_RUNNING} jobs are under way: wait for one, or cancel one"
            raise Problem(429, "too_many_jobs", text, headers={"Retry-After": "10"})
        self._starting += 1  # before anything is waited for: others who are started meanwhile count it
        try:
            # What dies from now on is not meant: a letter that dies again would be taken again and again. By the clock
            # of whoever writes down when they died: in a Cluster the catalogue may have another.
            job.wanted = job.wanted.as_of(await self._store.get_domain(job.queue.domain).link.now_ms())
            await self._posting.begin(job)
        finally:
            self._starting -= 1
        self._jobs[job.id] = job
        self._forget_old()
        job.task = asyncio.create_task(self._run(job), name=f"console job {job.id}")
        return job

    async def look(self) -> list[Told]:
        """Those of all consoles, the newest first; while the store is away, others' as they were."""
        with suppress(StoreError):
            await self._posting.look()
        return self.told()

    def told(self) -> list[Told]:
        """The same as of the last look, but of our own as they are."""
        found = {**self._posting.seen, **{job.id: job.told() for job in self._jobs.values()}}
        return sorted(found.values(), key=place_of, reverse=True)

    def foremost(self, number: int) -> list[Told]:
        """All that are under way, whatever their age, and then the newest of the others, up to so many together."""
        told = self.told()
        running = [job for job in told if job["state"] == State.RUNNING]
        ended = [job for job in told if job["state"] != State.RUNNING]
        return [*running, *ended[: max(number - len(running), 0)]]

    async def find(self, identifier: str) -> Told:
        """Raises Problem 404, StoreError."""
        if identifier in self._jobs:
            return self._jobs[identifier].told()
        found = (await self._posting.look()).get(identifier)
        if found is None:
            raise Problem(404, "job_unknown", f"there is no job {identifier!r}, or it ended too long ago")
        return found

    async def cancel(self, identifier: str) -> Told:
        """Returns when it has ended. One that ended before stays as it is. Raises Problem, StoreError."""
        job = self._jobs.get(identifier)
        if job is None:
            return await self._cancel_elsewhere(await self.find(identifier))
        await self._cancel(job)
        return job.told()

    @staticmethod
    async def _cancel(job: Job) -> None:
        if job.task is not None and job.state is State.RUNNING:
            if not job.is_ending:
                job.task.cancel()
            await job.ended.wait()

    async def _cancel_elsewhere(self, told: Told) -> Told:
        """One that is lost may be found again: who could not reach the store for long heeds the wish, too."""
        identifier, revives = told["id"], time.monotonic() + REVIVES_S
        if told["state"] == State.RUNNING or told["error"] == LOST:
            await self._posting.ask_end(identifier)
        try:
            async with asyncio.timeout(ELSEWHERE_S):
                while told["state"] == State.RUNNING or (
                    told["error"] == LOST and time.monotonic() < revives
                ):
                    await asyncio.sleep(POST_S / 4)
                    told = await self.find(identifier)
        except TimeoutError:
            text = "the console that runs it was told to end it, and has not said that it has: look again"
            raise Problem(504, "no_answer", text) from None
        return told

    def running(self) -> list[Job]:
        """Of this process."""
        return [job for job in self._jobs.values() if job.state is State.RUNNING]

    async def close(self) -> None:
        for job in self.running():
            job.error = "the console was ended: the same again goes on with what is left"
        await asyncio.gather(*(self._cancel(job) for job in self.running()))
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.task.done()]
        if tasks:
            _, unsaid = await asyncio.wait(tasks, timeout=LAST_S)
            for task in unsaid:
                log.warning(
                    "nobody else knows how it ended: %s", task.get_name(), extra={"action": "job_unsaid"}
                )
                task.cancel()
            await asyncio.gather(*unsaid, return_exceptions=True)

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.task is not None and job.task.done()]
        for identifier in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[identifier]

    # the work

    async def _run(self, job: Job) -> None:
        following = asyncio.create_task(self._follow(job), name=f"console job {job.id}, told to others")
        state = await self._outcome(job, self._work(job))
        job.is_ending = True
        following.cancel()  # nothing stands behind our last words
        (fault,) = await asyncio.gather(following, return_exceptions=True)
        if isinstance(fault, Exception):
            log.critical("a job is not told of: %r", fault, exc_info=fault, extra={"action": "job_fault"})
        try:
            await self._ending.end(job, counted(self._store, job.kind, job.queue, job.id), state)
        finally:
            job.ended.set()

    async def _outcome(self, job: Job, work: Callable[[], Awaitable[None]]) -> State:
        try:
            if job.matched is None:
                job.matched = await self._patiently(job, lambda: self._count(job))
            await self._patiently(job, work)
        except asyncio.CancelledError:
            return State.CANCELLED
        except StoreError as error:
            job.error = str(error)
            return State.FAILED
        except Exception as error:
            job.error = "a fault of our own: the log says more"
            fields = {"action": "job_fault", "job": job.id}
            log.critical("a job failed: %r", error, exc_info=error, extra=fields)
            return State.FAILED
        return State.DONE

    async def _follow(self, job: Job) -> None:
        await self._posting.follow(job)
        if job.task is not None and not job.is_ending:
            job.task.cancel()

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

    def _letters(self, job: Job) -> DeadLetters:
        return DeadLetters(self._store.get_domain(job.queue.domain), job.queue)

    async def _count(self, job: Job) -> int:
        if job.wanted == Filter(died_until_ms=job.wanted.died_until_ms):  # nobody has to look at each of them
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
                # one for all attempts: it knows what is meant also when the store has forgotten that
                run = QueuePurge(self._store.get_domain(job.queue.domain), job.queue, job.run, job.until)
                return lambda: self._empty(job, run)

    async def _redrive(self, job: Job) -> None:
        letters = self._letters(job)
        steps: AsyncIterator[RedriveResult] = redrive_steps(
            letters, job.wanted, job.goal, Pace(job.rate), job.run
        )
        before = job.moved = max(job.moved, await letters.moved_by(job.run))
        async with aclosing(steps):  # type: ignore[type-var]
            async for step in steps:
                before += step.moved
                job.moved, job.missing = before, job.missing + step.missing
                self._touched(job.queue.name)
                self._touched(job.goal.name)
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
