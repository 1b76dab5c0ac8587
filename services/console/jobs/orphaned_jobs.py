"""Complete jobs of consoles that were killed: publish the store's count of what they moved, and delete it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from services.console.jobs.job import JobDocument, Kind
from services.console.jobs.job_board import SharedJobs
from services.console.jobs.progress import stored_progress
from services.store import Store, StoreError
from services.store.model import QueueUnknown

log = logging.getLogger(__name__)

CHECK_S = 15.0
CERTAIN_S = 30.0  # a console that only could not reach the store publishes its jobs long before


class OrphanedJobs:
    """The orphaned jobs of the store, checked periodically."""

    def __init__(self, store: Store, shared: SharedJobs) -> None:
        self._store = store
        self._shared = shared
        self._silent: dict[
            tuple[str, int], float
        ] = {}  # ID and last heartbeat -> monotonic time of first notice

    async def check_forever(self) -> None:
        """Check every CHECK_S until cancelled."""
        while True:
            try:
                await self._check()
            except StoreError:
                pass
            except Exception as error:
                fields = {"action": "look_fault"}
                text = "check of orphaned jobs failed: internal error: %r"
                log.critical(text, error, exc_info=True, extra=fields)
            await asyncio.sleep(CHECK_S)

    async def _check(self) -> None:
        """End jobs that stay orphaned. Raises StoreError; then silence of consoles means nothing."""
        before, self._silent = self._silent, {}
        jobs, now = await self._shared.read(), time.monotonic()
        silent = {post: before.get(post, now) for post in self._shared.silent.items()}
        for (job_id, _), since in silent.items():
            if now - since >= CERTAIN_S:
                with suppress(StoreError):  # continue with the others
                    await self.end(jobs[job_id])
        self._silent = silent

    async def end(self, job: JobDocument) -> None:
        """Publish the final count. If several consoles do this at once, only the first finds a count."""
        try:
            queue, _ = await self._store.catalogue.find_leniently(job["queue"])
        except QueueUnknown:  # deleted with its count
            return
        progress = stored_progress(self._store, job["kind"], queue, job["id"])
        if progress is not None and (moved := await progress.moved()):
            await self._shared.end_orphan(job, max(moved, job["moved"]))
            if job["kind"] != Kind.EMPTY:  # its count expires, as its console may return
                await progress.forget()
