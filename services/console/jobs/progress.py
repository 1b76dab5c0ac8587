"""Read what a job has moved from the store's own count, as the job may have missed a response."""

from __future__ import annotations

from dataclasses import dataclass

from services.console.jobs.job import Kind, run_of
from services.store import DeadLetters, Queue, Store
from services.store.deadletters import QueuePurge


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """The store's count of one job. All methods raise StoreError."""

    work: QueuePurge | tuple[DeadLetters, str]  # dead letters, and the ID of the run

    async def moved(self) -> int:
        """Return the number moved so far; 0 if the count has expired."""
        if isinstance(self.work, QueuePurge):
            return await self.work.removed()
        letters, run = self.work
        return await letters.moved_by(run)

    async def forget(self) -> None:
        """Delete the count."""
        if isinstance(self.work, QueuePurge):
            await self.work.forget()
        else:
            letters, run = self.work
            await letters.forget_run(run)


def stored_progress(store: Store, kind: str, queue: Queue, job_id: str) -> StoredProgress | None:
    """Return the store's count of a job, or None for a kind of job that it does not count."""
    domain, run = store.get_domain(queue.domain), run_of(job_id)
    match kind:
        case Kind.REDRIVE:
            return StoredProgress((DeadLetters(domain, queue), run))
        case Kind.EMPTY:
            return StoredProgress(QueuePurge(domain, queue, run))
        case _:
            return None
