"""A call with a lost reply is repeated unchanged: traced messages are stored and recorded once."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from services.store import CommitPart
from services.store.model import records
from services.store.model.trace_context import of_record
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store

T = TypeVar("T")


async def lost_once(proxy: Proxy, asked: asyncio.Future[T]) -> T:
    """Return the final answer."""
    before = proxy.lost
    await until(lambda: proxy.lost > before)
    proxy.lose_replies_to = b""
    return await asked


async def in_queue(store: TracedStore) -> list[bytes]:
    queue = await store.catalogue.find("q")
    found = await store.get_domain(queue.domain).peek(queue, 1000)
    return [record for delivery in found for record in delivery.records()]


async def test_stored_record_has_the_context_of_its_span(server: Server, collector: Collector) -> None:
    async with (
        Proxy(server.port) as proxy,
        traced_store(proxy.url, collector.endpoint, ratio=0.5) as store,
    ):
        queue = await store.queue("q")
        client = await store.async_client(queue)
        run = [records.encode(b"%d" % number) for number in range(100)]
        proxy.lose_replies_to = b"ps1_work"
        assert await lost_once(proxy, asyncio.ensure_future(client.publish(queue, run, "test"))) == []
        stored = await in_queue(store)
    assert [records.decode(record).body for record in stored] == [b"%d" % number for number in range(100)]
    contexts = [context for record in stored if (context := of_record(record)) is not None]
    found = {(span.trace_id, span.span_id) for span in collector.of_name("send q")}
    assert found == {(f"{each.trace_id:032x}", f"{each.span_id:016x}") for each in contexts}
    assert len(collector.spans()) == len(contexts) > 0
    assert not any(span.is_error for span in collector.spans())


async def test_repeated_commit_has_its_spans_once(server: Server, collector: Collector) -> None:
    async with Proxy(server.port) as proxy, traced_store(proxy.url, collector.endpoint) as store:
        queue = await store.queue("q")
        await store.put(queue, b"in")
        client = await store.async_client(queue)
        got = await client.take(queue, 1)
        parts = [CommitPart(queue, got, [records.encode(b"out")], "test")]
        proxy.lose_replies_to = b"ps1_work"
        await lost_once(proxy, asyncio.ensure_future(client.commit("once", parts)))
        (record,) = await in_queue(store)
    first, second = collector.of_name("send q")
    (received,), (settled,) = collector.of_name("receive q"), collector.of_name("settle q")
    assert (received.parent_id, settled.parent_id) == (first.span_id, received.span_id)
    assert received.attributes["penstock.outcome"] == "settled"
    context = of_record(record)
    assert context is not None
    assert f"{context.span_id:016x}" == second.span_id
    assert second.attributes["penstock.outcome"] == "stored"
