"""Share jobs between all consoles of a store: each publishes its own, reads others', and can request to cancel them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from pydantic import ValidationError

from services.console.contract import shapes
from services.console.contract.moments import moment
from services.console.jobs.job import Job, JobDocument, State
from services.store import StoreError
from services.store.catalogue import JobBoard, Posted

PUBLISH_S = 1.0  # interval of publishing progress and reading requests to cancel
HEARTBEAT_S = 10.0  # interval of publishing without progress
SILENT_MS = 30_000  # a job without a heartbeat for so long is orphaned
MAX_ENDED = 200  # jobs kept
ORPHANED = "the console that ran it has stopped: repeat the request to continue with the rest"


class SharedJobs:
    """The jobs of all consoles, as of the last read."""

    def __init__(self, board: JobBoard) -> None:
        self._board = board
        self.jobs: dict[str, JobDocument] = {}  # by ID
        self.silent: dict[str, int] = {}  # orphaned jobs: ID -> ms since 1970 of the last heartbeat

    async def read(self) -> dict[str, JobDocument]:
        """Read all jobs. Raises StoreError."""
        posts = await self._board.read()
        valid = [post for post in posts.jobs if _is_valid(post)]
        self.jobs = {post.id: _document(post, posts.now_ms) for post in valid}
        self.silent = {post.id: post.written_ms for post in valid if _is_silent(post, posts.now_ms)}
        return self.jobs

    async def begin(self, job: Job) -> None:
        """Publish a new job; once this returns, all consoles see it. Raises StoreError."""
        await self._board.put(job.id, job.document())

    async def follow(self, job: Job) -> None:
        """Publish progress until another console requests the job's cancellation."""
        published, at = job.document(), time.monotonic()
        while True:
            await asyncio.sleep(PUBLISH_S)
            with suppress(StoreError):  # the job waits for the store, too
                if await self._board.is_to_end(job.id):
                    return
                now = job.document()
                if now != published or time.monotonic() - at > HEARTBEAT_S:
                    await self._board.put(job.id, now)
                    published, at = now, time.monotonic()

    async def end(self, job: Job) -> None:
        """Publish the result, and delete the oldest ended jobs. Raises StoreError."""
        result, jobs = job.document(), None
        while jobs is None or jobs.get(job.id, result) != result:
            # an earlier write, delayed while the store was unavailable, may arrive after the result
            await self._board.put(job.id, result)
            jobs = await self.read()
        ended = [each for each in jobs.values() if each["state"] != State.RUNNING]
        ended.sort(key=lambda each: str(each["startedAt"]), reverse=True)
        await self._board.remove(str(each["id"]) for each in ended[MAX_ENDED:])

    async def request_cancel(self, job_id: str) -> None:
        """Request the cancellation of another console's job. Raises StoreError."""
        await self._board.ask_end(job_id)

    async def end_orphan(self, job: JobDocument, moved: int) -> None:
        """Publish the result of an orphaned job. Raises StoreError."""
        await self._board.put(job["id"], {**job, "moved": moved})


def _is_valid(posted: Posted) -> bool:
    """Return False for a document of another version."""
    try:
        return shapes.Job.model_validate(posted.document).id == posted.id
    except ValidationError:
        return False


def _is_silent(posted: Posted, now_ms: int) -> bool:
    return posted.document["state"] == State.RUNNING and now_ms - posted.written_ms >= SILENT_MS


def _document(posted: Posted, now_ms: int) -> JobDocument:
    """Return the job; an orphaned one as failed."""
    if not _is_silent(posted, now_ms):
        return posted.document
    return {
        **posted.document,
        "state": State.FAILED.value,
        "endedAt": moment(posted.written_ms),
        "error": ORPHANED,
    }
