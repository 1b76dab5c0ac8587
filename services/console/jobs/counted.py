"""What a job has moved, as the store counts it: the job itself may have missed an answer."""

from __future__ import annotations

from dataclasses import dataclass

from services.console.jobs.job import Kind, run_of
from services.store import DeadLetters, Queue, Store
from services.store.deadletters import QueuePurge


@dataclass(frozen=True, slots=True)
class Counted:
    """Of one job. Every method raises StoreError."""

    work: QueuePurge | tuple[DeadLetters, str]  # or by which run

    async def moved(self) -> int:
        """Until now; 0 where nobody knows any more."""
        if isinstance(self.work, QueuePurge):
            return await self.work.removed()
        letters, run = self.work
        return await letters.moved_by(run)

    async def forget(self) -> None:
        """Nobody will ask any more."""
        if isinstance(self.work, QueuePurge):
            await self.work.forget()
        else:
            letters, run = self.work
            await letters.forget_run(run)


def counted(store: Store, kind: str, queue: Queue, identifier: str) -> Counted | None:
    """identifier: of the job. None: of such a job the store counts nothing."""
    domain, run = store.get_domain(queue.domain), run_of(identifier)
    match kind:
        case Kind.REDRIVE:
            return Counted((DeadLetters(domain, queue), run))
        case Kind.EMPTY:
            return Counted(QueuePurge(domain, queue, run))
        case _:
            return None
