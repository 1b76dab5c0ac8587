"""The USERs that are being carried out, and their answers in the order in which they came (ring.md 2.2)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count

from protos.ring import Route
from services.store import Queue


class Job:
    """One USER. `is_over`: nothing more is to be done; `is_safe`: so it is answered."""

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
        self.waits = False  # it is not known yet whether the queue is here
        self.queue: Queue | None = None
        self.parts = 1  # it is over when so many are
        self.is_over = False
        self.is_safe = True  # as far as is known


class Jobs:
    def __init__(self, unsafe: Callable[[], None]) -> None:
        """unsafe: told of each that could not be made safe."""
        self._unsafe = unsafe
        self._loop = asyncio.get_running_loop()
        self._serials = count()
        self._jobs: deque[Job] = deque()  # not answered yet
        self._answering = False

    def __len__(self) -> int:
        return len(self._jobs)

    def begin(self, route: Route, payload: bytes, safe: Callable[[], None]) -> Job:
        job = Job(next(self._serials), route, payload, safe, self._loop.time())
        self._jobs.append(job)
        return job

    def end(self, job: Job, is_safe: bool) -> None:
        """A part of it is over; it is safe if all are."""
        job.parts -= 1
        job.is_safe = job.is_safe and is_safe
        if job.parts > 0 or job.is_over:  # over: by a fault, before its other parts
            return
        job.is_over = True
        if not job.is_safe:
            self._unsafe()
        if not self._answering and self._jobs and self._jobs[0].is_over:
            self._answering = True
            self._loop.call_soon(self._answer)

    def fail(self, job: Job) -> None:
        """A fault of ours ends it, whatever of it is still under way."""
        job.parts = 1
        self.end(job, False)

    def close(self) -> None:
        """What is not answered by now is not safe: it comes again."""
        self._jobs.clear()

    def _answer(self) -> None:
        self._answering = False
        while self._jobs and self._jobs[0].is_over:
            job = self._jobs.popleft()
            if job.is_safe:
                job.safe()
