"""Pulls of a ring are settled by request id, or returned (ring.md 5.4)."""

from __future__ import annotations

import gc
import secrets

from services.store import Delivery, Queue
from services.store.model.operations import Source
from services.store.model.requests import Pulled, Settlement
from tests.live import until
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store

KEEP_MS = 60_000


async def pulled(store: TracedStore, queue: Queue, request: bytes) -> Delivery:
    answers: list[object] = []
    pipe = store.open_domain(queue.domain).pipe
    await pipe.ready()
    pipe.idempotent.pull(Source(store.client()), request, queue, 1 << 20, KEEP_MS, answers.append)
    answer = (await until(lambda: answers))[0]
    assert isinstance(answer, Pulled), answer
    return answer.delivery


async def test_ended_deliveries_are_forgotten(server: Server, collector: Collector) -> None:
    """Returned without the request, as by a node that cannot deliver it, or settled by the request."""
    requests = [secrets.token_bytes(16) for _ in range(3)]
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("orders")
        await store.put(queue, b"one", b"two", b"three")
        pipe = store.open_domain(queue.domain).pipe
        out = [await pulled(store, queue, request) for request in requests]
        await (await store.async_client(queue)).release(out[:1])
        answers: list[object] = []
        for request in requests[1:]:
            pipe.idempotent.settle(Source(store.client()), request, queue, answers.append)
        await until(lambda: len(answers) == 2)
        assert answers == [Settlement.SETTLED, Settlement.SETTLED]
        out.clear()
        gc.collect()
        assert [found for found in gc.get_objects() if isinstance(found, Delivery) and found.blob] == []
        pipe.idempotent.settle(Source(store.client()), requests[0], queue, answers.append)
        await until(lambda: len(answers) == 3)
        assert answers[2] in (Settlement.EXPIRED, Settlement.UNKNOWN)
    outcomes = [span.attributes["penstock.outcome"] for span in collector.of_name("receive orders")]
    assert sorted(outcomes) == ["returned", "settled", "settled"]
    assert len(collector.of_name("settle orders")) == 2
