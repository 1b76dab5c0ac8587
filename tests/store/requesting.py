"""Await requests of a ring, which a node makes under the ids of other nodes (ring.md 5.4)."""

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
    """Return the id of a request; 0 is invalid."""
    return number.to_bytes(16)


@dataclass
class Node:
    """A node that uses the store of a desk, and raises refusals."""

    desk: Desk
    source: Source = field(default_factory=lambda: Source(INTERNAL_CLIENT))

    async def _ask(self, verb: str, *args: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        getattr(self.desk.pipe.idempotent, verb)(self.source, *args, future.set_result)
        answer = await future
        if isinstance(answer, StoreError):
            raise answer
        return answer

    async def push(self, request: bytes, queue: Queue, body: bytes, keep_ms: int = KEEP_MS) -> Outcome:
        (record,) = encode(body)
        answer: Outcome = await self._ask("publish", RequestId(request, keep_ms), queue, record, "ring node")
        return answer

    async def pull(
        self, request: bytes, queue: Queue, *, largest: int = LARGEST, keep_ms: int = KEEP_MS
    ) -> Pulled | Nothing:
        answer: Pulled | Nothing = await self._ask("pull", request, queue, largest, keep_ms)
        return answer

    async def settle(self, request: bytes, queue: Queue) -> Settlement:
        answer: Settlement = await self._ask("settle", request, queue)
        return answer


def given(answer: Pulled | Nothing) -> tuple[bytes, bool]:
    """Return the body, and whether the reply is a repeat."""
    assert isinstance(answer, Pulled)
    (body,) = bodies([answer.delivery])
    return body, answer.again


async def queue_counts(desk: Desk, queue: Queue) -> tuple[int, int, int]:
    """Return the numbers of ready, in-flight and settled messages."""
    stats = await desk.stats(queue)
    return stats["ready"], stats["in_flight"], stats["acked"]


async def kept(desk: Desk, request: bytes) -> bytes | None:
    """Return the stored result of a request."""
    found: bytes | None = await desk.domain.link.call("GET", desk.domain.keys.request(request))
    return found
