"""The USERs being carried out, and their answers in order of arrival (ring.md 2.2)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count

from protos.ring import Route
from services.store import Queue


class Job:
    """One USER. `is_over`: nothing more is to be done; `is_safe`: then it is answered."""

    __slots__ = (
        "is_over",
        "is_safe",
        "parts",
        "payload",
        "queue",
        "route",
        "safe",
        "serial",
        "since",
        "waits",
    )

    def __init__(
        self, serial: int, route: Route, payload: bytes, safe: Callable[[], None], since: float
    ) -> None:
        self.serial = serial
        self.route = route
        self.payload = payload
        self.safe = safe
        self.since = since
        self.waits = False  # a queue lookup is under way
        self.queue: Queue | None = None
        self.parts = 1  # parts that are not over
        self.is_over = False
        self.is_safe = True  # so far


class Jobs:
    """The USERs that are not answered yet, in order."""

    def __init__(self, unsafe: Callable[[], None]) -> None:
        """unsafe: called for each USER that could not be made safe."""
        self._unsafe = unsafe
        self._loop = asyncio.get_running_loop()
        self._serials = count()
        self._jobs: deque[Job] = deque()  # not answered yet
        self._answering = False

    def __len__(self) -> int:
        return len(self._jobs)

    def begin(self, route: Route, payload: bytes, safe: Callable[[], None]) -> Job:
        """Add a USER; `safe` is called once it and all before it are safe."""
        job = Job(next(self._serials), route, payload, safe, self._loop.time())
        self._jobs.append(job)
        return job

    def end(self, job: Job, is_safe: bool) -> None:
        """End one part of a job, which is over when all parts are, and safe if all are."""
        job.parts -= 1
        job.is_safe = job.is_safe and is_safe
        if job.parts > 0 or job.is_over:  # over: by an internal error, before its other parts
            return
        job.is_over = True
        if not job.is_safe:
            self._unsafe()
        if not self._answering and self._jobs and self._jobs[0].is_over:
            self._answering = True
            self._loop.call_soon(self._answer)

    def fail(self, job: Job) -> None:
        """End a job because of an internal error, including its pending operations."""
        job.parts = 1
        self.end(job, False)

    def close(self) -> None:
        """Drop all jobs: what is not answered by now is not safe, and is sent again."""
        self._jobs.clear()

    def _answer(self) -> None:
        self._answering = False
        while self._jobs and self._jobs[0].is_over:
            job = self._jobs.popleft()
            if job.is_safe:
                job.safe()
