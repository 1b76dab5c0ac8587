"""What all handlers work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from services.console.audit.audit import Audit
from services.console.contract.etags import queue_etag, unreadable_etag
from services.console.history.history import History
from services.console.http.memory_budget import OPEN_OCTETS, Room
from services.console.jobs.jobs import Jobs
from services.console.live.live import Live
from services.console.live.processes import edge_of
from services.console.settings import ConsoleSettings
from services.kit.config import GlobalSettings
from services.store import DeadLetters, Queue, Store
from services.store.model import QueueUnknown
from services.store.pipeline import AsyncClient

SHOWN_JOBS = 50  # of the live view; more where more are under way


@dataclass(slots=True)
class Console:
    settings: ConsoleSettings
    everything: GlobalSettings  # for /config
    store: Store
    live: Live
    jobs: Jobs
    audit: Audit
    history: History
    stopping: asyncio.Event  # set when the process ends: who watches is let go
    room: Room = field(default_factory=Room)
    open_room: Room = field(default_factory=lambda: Room(OPEN_OCTETS))  # of answers that need no token
    streams: int = 0  # live views open now

    async def letters(self, name: str) -> tuple[Queue, DeadLetters, str]:
        """Also of a queue whose document cannot be read, and why not, or ''. Raises QueueUnknown."""
        queue, unreadable = await self.store.catalogue.find_leniently(name)
        return queue, DeadLetters(self.store.get_domain(queue.domain), queue), unreadable

    async def etag(self, queue: Queue, unreadable: str) -> str:
        """Of its document. unreadable: why that cannot be read, or ''. Raises QueueUnknown."""
        if not unreadable:
            return queue_etag(queue)
        document = await self.store.registry.document(queue.name)
        if document is None:
            raise QueueUnknown
        return unreadable_etag(queue, document)

    async def client(self, queue: Queue) -> AsyncClient:
        """Raises StoreUnavailable where no session can be opened."""
        pipe = self.store.open_domain(queue.domain).pipe
        await pipe.ready()
        return AsyncClient(pipe)

    def told(self) -> dict[str, Any]:
        """What the live view says beside the queues; each is sent when it changed."""
        return {
            "edges": {"items": [edge_of(process) for process in self.live.processes]},
            "jobs": {"items": self.jobs.foremost(SHOWN_JOBS)},
        }
