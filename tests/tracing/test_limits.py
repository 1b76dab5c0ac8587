"""Test that each trace is complete with a process's default limits under load (docs/tracing.md, "What it costs")."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.kit.config.settings import TracingSettings
from services.store import DeadLetters, Queue
from tests.live import until
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store

LOAD = 500  # messages at once
MOST = TracingSettings().most_per_s
MOST_FOLLOWED = TracingSettings().most_followed_per_s
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
async def store(server: Server, collector: Collector) -> AsyncIterator[TracedStore]:
    limits = {"most_per_s": MOST, "most_followed_per_s": MOST_FOLLOWED}
    async with traced_store(server.url, collector.endpoint, **limits) as store:
        yield store


async def test_each_started_trace_has_its_delivery(store: TracedStore, collector: Collector) -> None:
    queue = await store.queue("q")
    await store.put(queue, *[b"%d" % number for number in range(LOAD)])
    await _settle_all(store, queue)
    await until(lambda: store.counted("limited") > 0)
    await _same_traces(collector, "send q", "receive q")
    assert len(collector.of_name("send q")) < LOAD
    assert store.counted("unfollowed") == 0


async def test_deaths_and_redrives_have_spans(store: TracedStore, collector: Collector) -> None:
    queue = await store.queue("q")
    store.start_serving()
    await store.put(queue, *[b"%d" % number for number in range(LOAD)])
    client, goal = await store.async_client(queue), await store.queue("later")
    while got := await client.take(queue, LOAD):
        await client.reject(got, "refused", "never")
    await _same_traces(collector, "send q", "dead q")
    letters = DeadLetters(store.get_domain(queue.domain), queue)
    while left := [letter.id async for letter in letters.matching()]:
        assert (await letters.redrive(left, goal)).moved
    await _same_traces(collector, "send q", "redrive later")


async def test_clients_trace_continues(store: TracedStore, collector: Collector) -> None:
    """Check this with many other traces at the same time."""
    free, traced = await store.queue("free"), await store.queue("traced")
    await store.put(free, *[b"%d" % number for number in range(LOAD)])
    await store.put(traced, *[b"%d" % number for number in range(LOAD)], traceparent=CONTEXT)
    await _settle_all(store, traced)
    await until(lambda: len(collector.of_name("receive traced")) == LOAD)
    assert len(collector.of_name("send traced")) == LOAD


async def test_continued_traces_are_rate_limited(server: Server, collector: Collector) -> None:
    async with traced_store(server.url, collector.endpoint, most_followed_per_s=1) as store:
        queue = await store.queue("q")
        await store.put(queue, *[b"%d" % number for number in range(LOAD)], traceparent=CONTEXT)
        assert (await store.listing.stats(queue))["ready"] == LOAD
        await until(lambda: store.counted("unfollowed") >= LOAD - 5)
        assert store.counted("limited") == 0
    assert 1 <= len(collector.of_name("send q")) <= 5


async def _settle_all(store: TracedStore, queue: Queue) -> None:
    client = await store.async_client(queue)
    while got := await client.take(queue, LOAD):
        await client.settle(got)


async def _same_traces(collector: Collector, *names: str) -> None:
    """Check that each admitted trace has a span of each name, once all are exported."""

    def trace_ids(name: str) -> list[str]:
        return sorted(span.trace_id for span in collector.of_name(name))

    await until(
        lambda: (
            len(trace_ids(names[0])) >= MOST and all(trace_ids(name) == trace_ids(names[0]) for name in names)
        )
    )
