"""Spans of outcomes of messages and operations (docs/tracing.md)."""

from __future__ import annotations

from typing import Any

import pytest

from services.store import CommitPart, DeadLetters, Source
from services.store.model import records
from services.store.model.errors import BehindRefused, QueueFull, StoreError
from tests.live import until
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import traced_store


async def test_spans_of_returns_and_rejections(server: Server, collector: Collector) -> None:
    """Each delivery has its own span below the publish's; the dead letter's has the time of death."""
    async with traced_store(server.url, collector.endpoint) as store:
        store.start_serving()
        queue = await store.queue("q")
        await store.put(queue, b"a pump")
        async_client = await store.async_client(queue)
        await async_client.release(await async_client.take(queue, 1), failed=True, error="not now")
        await async_client.reject(await async_client.take(queue, 1), "refused", "never")
        sent, dead = await collector.has("send q", "dead q")
        (letter,) = [letter async for letter in DeadLetters(store.get_domain(queue.domain), queue).matching()]
    first, second = collector.of_name("receive q")
    released, rejected = collector.of_name("release q") + collector.of_name("reject q")
    assert {span.trace_id for span in collector.spans()} == {sent.trace_id}
    assert first.parent_id == second.parent_id == dead.parent_id == sent.span_id
    assert (released.parent_id, rejected.parent_id) == (first.span_id, second.span_id)
    assert first.attributes["penstock.outcome"] == "returned"
    assert second.attributes["penstock.outcome"] == "rejected"
    assert (second.attributes["penstock.acquired"], second.attributes["penstock.failed"]) == (2, 1)
    assert released.attributes["penstock.has_failed"] is True
    assert released.attributes["penstock.error"] == "not now"
    assert rejected.attributes["penstock.reason"] == dead.attributes["penstock.reason"] == "refused"
    assert dead.start_ns / 1e6 == pytest.approx(letter.died_ms, abs=1000)  # by two clocks
    assert dead.attributes["error.type"] == "refused"
    assert len(collector.of_name("dead q")) == 1


async def test_messages_that_die_in_the_store_have_spans(server: Server, collector: Collector) -> None:
    """The message expires and is redriven in the same trace."""
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("q", messageTTL="1ms")
        await store.put(queue, b"a pump")
        letters = DeadLetters(store.get_domain(queue.domain), queue)
        store.start_serving()
        sent, dead = await collector.has("send q", "dead q")
        assert dead.attributes["penstock.reason"] == "expired"
        goal = await store.queue("later")
        (letter,) = [letter async for letter in letters.matching()]
        assert (await letters.redrive([letter.id], goal)).moved == 1
        async_client = await store.async_client(goal)
        await async_client.settle(await async_client.take(goal, 1))
    redriven, received = await collector.has("redrive later", "receive later")
    assert redriven.trace_id == received.trace_id == dead.trace_id == sent.trace_id
    assert redriven.attributes["penstock.letter"] == letter.id
    assert redriven.kind == "producer"


async def test_refused_publish_has_a_span_with_the_reason(server: Server, collector: Collector) -> None:
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("q", maxLength=1)
        async_client = await store.async_client(queue)
        ((index, why),) = await async_client.publish(
            queue, [records.encode(b"in"), records.encode(b"out")], "test"
        )
        assert (index, type(why)) == (1, QueueFull)
    well, badly = sorted(collector.of_name("send q"), key=lambda span: span.is_error)
    assert not well.is_error
    assert badly.attributes["error.type"] == why.reason
    assert badly.attributes["messaging.batch.message_count"] == 2
    assert well.trace_id != badly.trace_id


async def test_ordered_publishes_have_their_reasons(server: Server, collector: Collector) -> None:
    """One publish of a call does not fit, so the source's later ones are refused, too."""
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("q", maxLength=1)
        pipe, source = store.open_domain(queue.domain).pipe, Source(store.client())
        await pipe.ready()
        outcomes: list[Any] = []
        for bodies in ((b"in", b"out"), (b"behind",)):
            run = [records.encode(body) for body in bodies]
            pipe.messages.publish(source, queue, run, "test", outcomes.append, in_order=True)
        await until(lambda: len(outcomes) == 2)
        pipe.messages.publish(
            source, queue, [records.encode(b"later")], "test", outcomes.append, in_order=True
        )
        await until(lambda: len(outcomes) == 3)
        assert [type(outcomes[0][0][1]), *map(_why, outcomes[1:])] == [QueueFull, QueueFull, BehindRefused]
    sent = sorted(collector.of_name("send q"), key=lambda span: span.start_ns)
    assert [span.attributes.get("error.type") for span in sent] == [
        None,
        QueueFull.reason,
        QueueFull.reason,
        BehindRefused.reason,
    ]


def _why(answer: Any) -> type[StoreError]:
    """Check a run that was refused as a whole, or message by message."""
    return type(answer if isinstance(answer, StoreError) else answer[0][1])


async def test_commit_ends_and_begins_spans(server: Server, collector: Collector) -> None:
    async with traced_store(server.url, collector.endpoint) as store:
        source, goal = await store.queue("source"), await store.queue("goal")
        await store.put(source, b"in")
        async_client = await store.async_client(source)
        got = await async_client.take(source, 1)
        parts = [CommitPart(source, got, [], ""), CommitPart(goal, [], [records.encode(b"out")], "test")]
        await async_client.commit("once", parts)
    (received,) = collector.of_name("receive source")
    (put,) = collector.of_name("send goal")
    (settled,) = collector.of_name("settle source")
    assert received.attributes["penstock.outcome"] == "settled"
    assert settled.parent_id == received.span_id
    assert put.attributes["penstock.outcome"] == "stored"


async def test_deliveries_of_a_refused_commit_stay_open(server: Server, collector: Collector) -> None:
    """Until it is returned, as by a refused transaction (tmq.md 5.3), or settled."""
    async with traced_store(server.url, collector.endpoint) as store:
        source, goal = await store.queue("source"), await store.queue("goal", maxLength=1)
        await store.put(source, b"one", b"two")
        async_client = await store.async_client(source)
        one, two = [(await async_client.take(source, 1))[0] for _ in range(2)]
        out = CommitPart(goal, [], [records.encode(body) for body in (b"a", b"b")], "test")
        with pytest.raises(QueueFull):
            await async_client.commit("once", [CommitPart(source, [one, two], [], ""), out])
        await async_client.release([one])
        await async_client.commit("again", [CommitPart(source, [two], [], "")])
    (returned, settled), (released,) = (
        collector.of_name("receive source"),
        collector.of_name("release source"),
    )
    of_one, of_two, well = collector.of_name("settle source")
    assert returned.attributes["penstock.outcome"] == "returned"
    assert settled.attributes["penstock.outcome"] == "settled"
    assert {of_one.parent_id, of_two.parent_id} == {returned.span_id, settled.span_id}
    assert of_one.attributes["error.type"] == of_two.attributes["error.type"] == QueueFull.reason
    assert (released.parent_id, well.parent_id) == (returned.span_id, settled.span_id)
    assert not any(span.is_error for span in (well, released, returned, settled))
    assert returned.end_ns >= released.end_ns > of_one.end_ns
    assert settled.end_ns >= well.end_ns > of_two.end_ns
    assert [span.attributes["error.type"] for span in collector.of_name("send goal")] == 2 * [
        QueueFull.reason
    ]


@pytest.mark.parametrize("ratio", [1.0, 0.5])
async def test_traces_are_rate_limited(server: Server, collector: Collector, ratio: float) -> None:
    """Check the limit for each ratio; other messages are counted and stored as usual."""
    async with traced_store(server.url, collector.endpoint, ratio=ratio, most_per_s=1) as store:
        queue = await store.queue("q")
        await store.put(queue, *[b"%d" % number for number in range(1000)])
        assert (await store.listing.stats(queue))["ready"] == 1000
        await until(lambda: store.counted("exported") >= 1)
        await until(lambda: store.counted("limited") >= 300)
    assert 1 <= len(collector.of_name("send q")) <= 5


async def test_at_most_once_delivery_ends_at_once(server: Server, collector: Collector) -> None:
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("q", delivery="at-most-once")
        await store.put(queue, b"a pump")
        (got,) = await (await store.async_client(queue)).take(queue, 1)
        assert got.settled
    (received,) = collector.of_name("receive q")
    assert received.attributes["penstock.outcome"] == "settled"


async def test_open_deliveries_end_at_close(server: Server, collector: Collector) -> None:
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("q")
        await store.put(queue, b"a pump")
        assert await (await store.async_client(queue)).take(queue, 1)
    (received,) = collector.of_name("receive q")
    assert received.attributes["penstock.outcome"] == "unknown"
