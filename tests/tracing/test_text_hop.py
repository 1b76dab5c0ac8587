"""Over links every store knows a message by its number (docs/tracing.md, pubsub.md 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.store.asking import Asker
from tests.live import until
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import hold_the_same, linked, send_all
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder

ORDERS = {"bindings": {"text": {"subscribe": ["order.*"]}}}


@pytest.fixture
async def pair(new_server: NewServer, recorder: NewRecorder) -> AsyncIterator[tuple[LiveEdge, LiveEdge]]:
    """Two stores, linked; both traced."""
    one = LiveEdge((await new_server()).url)
    one.recorder = recorder("pubsub")
    await one.start()
    two = LiveEdge((await new_server()).url, neighbours=[one.link_address])
    two.recorder = recorder("pubsub")
    await two.start()
    await linked(one)
    await linked(two)
    yield one, two
    for edge in (one, two):
        await edge.close()
        edge.check_no_fault_of_ours()


async def test_a_copy_at_the_other_end(pair: tuple[LiveEdge, LiveEdge], collector: Collector) -> None:
    one, two = pair
    queue = await two.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    await hold_the_same(one, two)
    pipe = two.service.store.domain(queue.domain).pipe
    asker = Asker(pipe)
    await asker.settle(await until(lambda: asker.take(queue, 1)))
    forwarded, copied, got = await collector.has("forward log", "send orders", "receive orders")
    assert forwarded.trace_id == copied.trace_id == got.trace_id
    assert (forwarded.parent_id, copied.parent_id, got.parent_id) == (
        "",
        forwarded.span_id,
        copied.span_id,
    )
    assert forwarded.attributes["penstock.number"] == 1


async def test_a_copy_here(pair: tuple[LiveEdge, LiveEdge], collector: Collector, tmp_path: Path) -> None:
    """What is sent to the text service of the store that has the queue: one trace from the SEND on."""
    one, _ = pair
    queue = await one.declare("orders", **ORDERS)
    await send_all(await one.client(), b"order.new", [b"a pump"])
    asker = Asker(one.service.store.domain(queue.domain).pipe)
    await asker.settle(await until(lambda: asker.take(queue, 1)))
    sent, copied, got = await collector.has("send log", "send orders", "receive orders")
    assert sent.trace_id == copied.trace_id == got.trace_id
    assert (sent.parent_id, copied.parent_id) == ("", sent.span_id)
    assert sent.attributes["penstock.copies"] == 1
