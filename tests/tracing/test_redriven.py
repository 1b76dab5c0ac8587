"""Spans of redriven dead letters, and of no others."""

from __future__ import annotations

from services.store import DeadLetters
from services.store.model.errors import QueueFull
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store

BETWEEN = 250  # letters between two that are brought back; a page has 200


async def dead(store: TracedStore, number: int) -> tuple[DeadLetters, list[str]]:
    queue = await store.queue("orders")
    await store.put(queue, *[b"%d" % index for index in range(number)])
    client = await store.async_client(queue)
    while got := await client.take(queue, 1000):
        await client.reject(got, "refused")
    letters = DeadLetters(store.get_domain(queue.domain), queue)
    return letters, [letter.id async for letter in letters.matching()]


async def test_redriven_letters_have_spans(server: Server, collector: Collector) -> None:
    """One was purged meanwhile, one did not fit, and they were far apart."""
    async with traced_store(server.url, collector.endpoint) as store:
        letters, ids = await dead(store, BETWEEN + 4)
        first, gone, last, left = ids[0], ids[1], ids[-2], ids[-1]
        assert await letters.purge([gone]) == 1
        done = await letters.redrive([first, gone, last, left], await store.queue("later", maxLength=2))
        assert (done.moved, done.missing, type(done.stopped)) == (2, 1, QueueFull)
    spans = collector.of_name("redrive later")
    assert sorted(span.attributes["penstock.letter"] for span in spans) == sorted([first, last])
    sent = {span.trace_id: span.span_id for span in collector.of_name("send orders")}
    assert [span.parent_id for span in spans] == [sent[span.trace_id] for span in spans]
    assert {span.attributes["penstock.reason"] for span in spans} == {"refused"}


async def test_older_process_gets_its_usual_reply(server: Server, collector: Collector) -> None:
    """Check the reply to an older version, which passes fewer keys and expects three values."""
    async with traced_store(server.url, collector.endpoint) as store:
        _, ids = await dead(store, 2)
        queue = await store.catalogue.find("orders")
        domain = store.get_domain(queue.domain)
        keys = [*queue.keys, *queue.keys]
        assert await domain.function("redrive", keys, domain.keys.wake_channel, *ids) == [2, 0, b""]
