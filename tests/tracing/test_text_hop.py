"""Test traces over links, where all stores use the number of a message (docs/tracing.md, pubsub.md 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from services.store import DeadLetters
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import Neighbour, hold_the_same, linked, send_all
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder

ORDERS = {"bindings": {"text": {"subscribe": ["order.*"]}}}


Begin = Callable[..., Awaitable[LiveEdge]]


@pytest.fixture
async def begin(new_server: NewServer, recorder: NewRecorder) -> AsyncIterator[Begin]:
    """Return a factory of traced edges, each with its own store, linked to others: `await begin(one, two)`."""
    edges: list[LiveEdge] = []

    async def start(*neighbours: LiveEdge) -> LiveEdge:
        addresses = [neighbour.link_address for neighbour in neighbours]
        edges.append(LiveEdge((await new_server()).url, neighbours=addresses))
        edges[-1].recorder = recorder("pubsub")
        return await edges[-1].start()

    yield start
    for edge in edges:
        await edge.close()
    for edge in edges:
        edge.check_no_fault_of_ours()


@pytest.fixture
async def pair(begin: Begin) -> tuple[LiveEdge, LiveEdge]:
    one = await begin()
    two = await begin(one)
    await linked(one)
    await linked(two)
    return one, two


async def test_copy_at_the_other_store(pair: tuple[LiveEdge, LiveEdge], collector: Collector) -> None:
    one, two = pair
    queue = await two.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    await hold_the_same(one, two)
    pipe = two.service.store.open_domain(queue.domain).pipe
    async_client = AsyncClient(pipe)
    await async_client.settle(await until(lambda: async_client.take(queue, 1)))
    forwarded, copied, got = await collector.has("forward log", "send orders", "receive orders")
    assert forwarded.trace_id == copied.trace_id == got.trace_id
    assert (forwarded.parent_id, copied.parent_id, got.parent_id) == (
        "",
        forwarded.span_id,
        copied.span_id,
    )
    assert forwarded.attributes["penstock.number"] == 1


async def test_copy_at_this_store(
    pair: tuple[LiveEdge, LiveEdge], collector: Collector, tmp_path: Path
) -> None:
    """A SEND at the queue's own store: one trace from the SEND on."""
    one, _ = pair
    queue = await one.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    async_client = AsyncClient(one.service.store.open_domain(queue.domain).pipe)
    await async_client.settle(await until(lambda: async_client.take(queue, 1)))
    sent, copied, got = await collector.has("send log", "send orders", "receive orders")
    assert sent.trace_id == copied.trace_id == got.trace_id
    assert (sent.parent_id, copied.parent_id) == ("", sent.span_id)
    assert sent.attributes["penstock.copies"] == 1


async def test_each_neighbour_has_its_own_span(begin: Begin, collector: Collector) -> None:
    """The hops begin the trace in parallel; each copy continues from its own hop."""
    one = await begin()
    others = [await begin(one), await begin(one)]
    await linked(one, 2)
    for other in others:
        await linked(other)
        await other.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    await hold_the_same(one, *others)
    forwarded = await until(lambda: len(found := collector.of_name("forward log")) == 2 and found)
    copied = await until(lambda: len(found := collector.of_name("send orders")) == 2 and found)
    assert len({span.span_id for span in (*forwarded, *copied)}) == 4
    assert len({span.trace_id for span in (*forwarded, *copied)}) == 1
    assert {span.parent_id for span in forwarded} == {""}
    assert {span.parent_id for span in copied} == {span.span_id for span in forwarded}
    assert len({span.attributes["penstock.neighbour"] for span in forwarded}) == 2


async def test_trace_crosses_two_links(begin: Begin, collector: Collector) -> None:
    one = await begin()
    two = await begin(one)
    three = await begin(two)
    for edge, number in ((one, 1), (two, 2), (three, 1)):
        await linked(edge, number)
    await three.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    await hold_the_same(one, two, three)
    (copied,) = await collector.has("send orders")
    first, second = sorted(
        await until(lambda: len(found := collector.of_name("forward log")) == 2 and found),
        key=lambda span: bool(span.parent_id),
    )
    assert (first.parent_id, second.parent_id) == ("", first.span_id)
    assert copied.parent_id == second.span_id
    assert first.trace_id == second.trace_id == copied.trace_id


async def test_copys_span_has_its_outcome(begin: Begin, collector: Collector) -> None:
    """One is stored, one is skipped as known, and one does not fit and becomes a dead letter."""
    edge = await begin()
    queue = await edge.declare("orders", maxLength=1, **ORDERS)
    first = await Neighbour.meet(edge, b"first")
    await first.entry(1, b"order.new", b"a pump")
    await collector.has("send orders")
    second = await Neighbour.meet(edge, b"second")
    lines = [b"ENTRY first inc1 %d order.new %d" % (number, number) for number in (1, 2)]
    await second.say(*lines)
    (buried,) = await collector.has("bury orders")
    assert buried.attributes["penstock.reason"] == "rejected_full"
    assert len(collector.of_name("send orders")) == len(collector.of_name("bury orders")) == 1
    letters = DeadLetters(edge.tools.get_domain(queue.domain), queue)
    (letter,) = [letter async for letter in letters.matching()]
    assert letter.attributes["traceparent"] == f"00-{buried.trace_id}-{buried.span_id}-01"
