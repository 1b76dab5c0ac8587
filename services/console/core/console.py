"""The components that handlers work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from services.console.audit.audit import Audit
from services.console.contract.etags import queue_etag, unreadable_etag
from services.console.history.history import History
from services.console.http.memory_budget import OPEN_OCTETS, MemoryBudget
from services.console.jobs.jobs import Jobs
from services.console.live.live import Live
from services.console.live.processes import edge_document
from services.console.settings import ConsoleSettings
from services.kit.config import GlobalSettings
from services.store import DeadLetters, Queue, Store
from services.store.model import QueueUnknown
from services.store.pipeline import AsyncClient

SHOWN_JOBS = 50  # in the live view, or all running ones if there are more


@dataclass(slots=True)
class Console:
    """The components of the console."""

    settings: ConsoleSettings
    everything: GlobalSettings  # for /config
    store: Store
    live: Live
    jobs: Jobs
    audit: Audit
    history: History
    stopping: asyncio.Event  # set when the process stops, to end live views
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    # of responses without a token
    open_budget: MemoryBudget = field(default_factory=lambda: MemoryBudget(OPEN_OCTETS))
    streams: int = 0  # open live views

    async def letters(self, name: str) -> tuple[Queue, DeadLetters, str]:
        """Return a queue, its dead letters, and why its document cannot be read, or ''. Raises QueueUnknown."""
        queue, unreadable = await self.store.catalogue.find_leniently(name)
        return queue, DeadLetters(self.store.get_domain(queue.domain), queue), unreadable

    async def etag(self, queue: Queue, unreadable: str) -> str:
        """Return the queue's ETag. unreadable: why its document cannot be read, or ''. Raises QueueUnknown."""
        if not unreadable:
            return queue_etag(queue)
        document = await self.store.registry.document(queue.name)
        if document is None:
            raise QueueUnknown
        return unreadable_etag(queue, document)

    async def client(self, queue: Queue) -> AsyncClient:
        """Return a client that publishes to the queue. Raises StoreUnavailable if no session can be opened."""
        pipe = self.store.open_domain(queue.domain).pipe
        await pipe.ready()
        return AsyncClient(pipe)

    def events(self) -> dict[str, Any]:
        """Return the documents of the live view's events other than queues."""
        return {
            "edges": {"items": [edge_document(process) for process in self.live.processes]},
            "jobs": {"items": self.jobs.foremost(SHOWN_JOBS)},
        }
