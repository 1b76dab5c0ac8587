"""Edges that are traced beside those that are not, and beside those of before, which know nothing of traces: the same
messages, in any order; spans of those who tell any."""

from __future__ import annotations

from services.store import Queue
from services.store.model import records
from services.store.model.trace_context import KEY, fresh
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store


async def bodies(store: TracedStore, queue: Queue, *, settled: bool) -> list[bytes]:
    """All that are ready; given back, if they are not settled."""
    async_client = await store.async_client(queue)
    got = await async_client.take(queue, 1000)
    await (async_client.settle(got) if settled else async_client.release(got))
    return [records.decode(record).body for delivery in got for record in delivery.records()]


async def test_what_one_puts_in_the_other_takes_out(server: Server, collector: Collector) -> None:
    numbers = [b"%d" % number for number in range(100)]
    async with (
        traced_store(server.url, None) as plain,
        traced_store(server.url, collector.endpoint, ratio=0.2) as traced,
    ):
        queue = await traced.queue("q")
        await plain.put(queue, *numbers[:30])
        await traced.put(queue, *numbers[30:70])
        await plain.put(queue, *numbers[70:])
        for store in (plain, traced, plain):
            assert await bodies(store, queue, settled=False) == numbers
        assert await bodies(traced, queue, settled=True) == numbers
    sent = {span.span_id for span in collector.of_name("send q")}
    received = collector.of_name("receive q")
    assert len(received) == 2 * len(sent)
    assert {span.parent_id for span in received} == sent
    assert {span.service for span in collector.spans()} == {"penstock-test"}
    acquired = sorted({span.attributes["penstock.acquired"] for span in received})
    assert acquired == ([2, 4] if sent else [])


async def test_what_is_traced_may_stand_anywhere_in_an_entry(server: Server, collector: Collector) -> None:
    """An edge that is not traced packs as ever. Whoever looks at the first octet alone passes some over: what he takes
    out, and settles, is whole all the same."""
    theirs = fresh()
    async with (
        traced_store(server.url, None) as plain,
        traced_store(server.url, collector.endpoint, ratio=0) as traced,
    ):
        queue = await traced.queue("q")
        run = [records.encode(b"first"), records.encode(b"second", {KEY: theirs.header})]
        assert await (await plain.async_client(queue)).publish(queue, run, "test") == []
        with server.client() as client:
            assert client.call("XLEN", queue.keys[0]) == 1
        await plain.put(queue, b"third", **{KEY: theirs.header})
        assert await bodies(traced, queue, settled=True) == [b"first", b"second", b"third"]
        assert (await traced.listing.stats(queue))["ready"] == 0
    (received,) = collector.of_name("receive q")
    assert received.parent_id == f"{theirs.span_id:016x}"
    assert received.attributes["penstock.outcome"] == "settled"
