"""Jobs where all consoles of a store see them: each writes down its own, reads others', and may ask for their end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from pydantic import ValidationError

from services.console.contract import shapes
from services.console.contract.moments import moment
from services.console.jobs.job import Job, State, Told
from services.store import StoreError
from services.store.catalogue import JobBoard, Posted

POST_S = 1.0  # how soon the others see how far a job is, and its process that they want it to end
RENEW_S = 10.0  # a job that stands still is written down as often
SILENT_MS = 30_000  # who has not written for so long does not run
KEPT = 200  # jobs that ended
LOST = "the console that ran it is gone: the same again goes on with what is left"


class Posting:
    def __init__(self, board: JobBoard) -> None:
        self._board = board
        self.seen: dict[str, Told] = {}  # by id, as of the last look
        self.silent: dict[str, int] = {}  # of them: ms, when those were written that nobody seems to run

    async def look(self) -> dict[str, Told]:
        """All that stands there. Raises StoreError."""
        posts = await self._board.read()
        read = [one for one in posts.jobs if _is_ours(one)]
        self.seen = {one.id: _told(one, posts.now_ms) for one in read}
        self.silent = {one.id: one.written_ms for one in read if _is_silent(one, posts.now_ms)}
        return self.seen

    async def begin(self, job: Job) -> None:
        """Once this returns everybody sees it. Raises StoreError."""
        await self._board.put(job.id, job.told())

    async def follow(self, job: Job) -> None:
        """Until somebody wants it to end, or this task is cancelled."""
        told, at = job.told(), time.monotonic()
        while True:
            await asyncio.sleep(POST_S)
            with suppress(StoreError):  # the job waits for the store, too
                if await self._board.is_to_end(job.id):
                    return
                now = job.told()
                if now != told or time.monotonic() - at > RENEW_S:
                    await self._board.put(job.id, now)
                    told, at = now, time.monotonic()

    async def end(self, job: Job) -> None:
        """Its last words; and the oldest that ended are forgotten. Raises StoreError."""
        words, seen = job.told(), None
        while seen is None or seen.get(job.id, words) != words:
            # else words of before, on their way while the store was away, came behind the last ones
            await self._board.put(job.id, words)
            seen = await self.look()
        ended = [told for told in seen.values() if told["state"] != State.RUNNING]
        ended.sort(key=lambda told: str(told["startedAt"]), reverse=True)
        await self._board.remove(str(told["id"]) for told in ended[KEPT:])

    async def ask_end(self, identifier: str) -> None:
        """Raises StoreError."""
        await self._board.ask_end(identifier)

    async def give_up(self, told: Told, moved: int) -> None:
        """The last words on a job whose console is gone. Raises StoreError."""
        await self._board.put(told["id"], {**told, "moved": moved})


def _is_ours(posted: Posted) -> bool:
    """Else it is of another version, and of a shape that nobody was promised."""
    try:
        return shapes.Job.model_validate(posted.document).id == posted.id
    except ValidationError:
        return False


def _is_silent(posted: Posted, now_ms: int) -> bool:
    return posted.document["state"] == State.RUNNING and now_ms - posted.written_ms >= SILENT_MS


def _told(posted: Posted, now_ms: int) -> Told:
    """One whose process was killed says nothing of its end."""
    told = posted.document
    if not _is_silent(posted, now_ms):
        return told
    return {**told, "state": State.FAILED.value, "endedAt": moment(posted.written_ms), "error": LOST}
