"""Requests of a ring, awaited: what a node asks of its store under the ids of others (ring.md 5.4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from services.store import INTERNAL_CLIENT, Outcome, Queue, Source, StoreError
from services.store.model.identities import RequestId
from services.store.model.requests import Nothing, Pulled, Settlement
from tests.store.desk import Desk, bodies, encode

KEEP_MS = 60_000
LARGEST = 1000


def request_id(number: int) -> bytes:
    """An id of a request; 0 is none."""
    return number.to_bytes(16)


@dataclass
class Node:
    """What asks the store of a desk. Refusals are raised."""

    desk: Desk
    source: Source = field(default_factory=lambda: Source(INTERNAL_CLIENT))

    async def _told(self, verb: str, *args: Any) -> Any:
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        getattr(self.desk.pipe.idempotent, verb)(self.source, *args, told.set_result)
        answer = await told
        if isinstance(answer, StoreError):
            raise answer
        return answer

    async def push(self, request: bytes, queue: Queue, body: bytes, keep_ms: int = KEEP_MS) -> Outcome:
        (record,) = encode(body)
        answer: Outcome = await self._told("publish", RequestId(request, keep_ms), queue, record, "ring node")
        return answer

    async def pull(
        self, request: bytes, queue: Queue, *, largest: int = LARGEST, keep_ms: int = KEEP_MS
    ) -> Pulled | Nothing:
        answer: Pulled | Nothing = await self._told("pull", request, queue, largest, keep_ms)
        return answer

    async def settle(self, request: bytes, queue: Queue) -> Settlement:
        answer: Settlement = await self._told("settle", request, queue)
        return answer


def given(told: Pulled | Nothing) -> tuple[bytes, bool]:
    """Body, and whether it was told again."""
    assert isinstance(told, Pulled)
    (body,) = bodies([told.delivery])
    return body, told.again


async def looks(desk: Desk, queue: Queue) -> tuple[int, int, int]:
    """ready, in flight, settled"""
    stats = await desk.stats(queue)
    return stats["ready"], stats["in_flight"], stats["acked"]


async def kept(desk: Desk, request: bytes) -> bytes | None:
    """What is remembered of it."""
    found: bytes | None = await desk.domain.link.call("GET", desk.domain.keys.request(request))
    return found
