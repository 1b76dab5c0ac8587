"""RQP/cast carries no context: both ends derive one from the message's id (docs/tracing.md, rqp_cast.md 2.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.store import Queue
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import keyed, remote
from tests.rqp.live import LiveEdge
from tests.servers import Server
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder


@pytest.fixture
async def machines(server: Server, recorder: NewRecorder) -> AsyncIterator[Machines]:
    """Return two traced edges."""
    edges: list[LiveEdge] = []

    async def start(server: Server, ratio: float = 1.0, **settings: Any) -> LiveEdge:
        edges.append(LiveEdge(server.url, **settings))
        edges[-1].recorder = recorder("rqp", ratio=ratio)
        return await edges[-1].start()

    yield Machines(start, server)
    for edge in edges:
        await edge.close()
    for edge in edges:
        edge.check_no_fault_of_ours()


async def put_as_a_client(edge: LiveEdge, queue: Queue, body: bytes) -> None:
    """Publish through the edge's traced store."""
    pipe = edge.service.pipe(queue)
    await pipe.ready()
    assert await AsyncClient(pipe).publish(queue, [len(body).to_bytes(4) + body], "test") == []


async def test_a_hop_between_two_stores(
    new_server: NewServer, machines: Machines, collector: Collector
) -> None:
    there = await machines.receiver(server=await new_server())
    here = await machines.sender()
    goal, out = await keyed(there), await remote(here)
    await put_as_a_client(here, out, b"a pump")
    await until(lambda: here.is_empty(out))
    async_client = AsyncClient(there.service.pipe(goal))
    await async_client.settle(await async_client.take(goal, 1))
    put, left, came, got = await collector.has(
        f"send {out.name}", f"settle {out.name}", f"send {goal.name}", f"receive {goal.name}"
    )
    attempt, hop = sorted(
        await until(lambda: len(found := collector.of_name(f"forward {out.name}")) == 2 and found),
        key=lambda span: span.trace_id != put.trace_id,
    )
    # the sending system: put, passed to the agent, attempted, settled
    assert {span.trace_id for span in (put, attempt, left)} == {put.trace_id}
    assert attempt.kind == "client"
    assert attempt.attributes["penstock.outcome"] == "confirmed"
    assert attempt.attributes["network.peer.address"] == "127.0.0.2"
    # between: each links to the other
    assert hop.trace_id != put.trace_id
    assert hop.parent_id == ""
    assert attempt.links == [(hop.trace_id, hop.span_id)]
    assert hop.links == [(attempt.trace_id, attempt.span_id)]
    # the receiving system: the other trace continues
    assert came.trace_id == got.trace_id == hop.trace_id
    assert (came.parent_id, got.parent_id) == (hop.span_id, came.span_id)


async def test_failed_attempts_have_spans(machines: Machines, collector: Collector) -> None:
    here = await machines.sender(t_wait1_s=0.05)
    out = await remote(here)
    await put_as_a_client(here, out, b"a pump")
    attempts = await until(lambda: len(found := collector.of_name(f"forward {out.name}")) >= 2 and found)
    assert {span.attributes["error.type"] for span in attempts} == {"no_answer"}
    assert {span.trace_id for span in attempts} == {collector.of_name(f"send {out.name}")[0].trace_id}


async def test_id_alone_decides_sampling(
    new_server: NewServer, machines: Machines, collector: Collector
) -> None:
    """Unsampled ids begin no trace at random: half of the messages are traced, no more."""
    number = 16
    there = await machines.receiver(server=await new_server(), edge={"ratio": 0.5})
    here = await machines.sender()
    goal, out = await keyed(there), await remote(here)
    await here.put(out, *(b"%d" % each for each in range(number)))
    await until(lambda: here.is_empty(out))
    for edge in (here, there):
        assert edge.recorder is not None
        await edge.recorder.close()
    hops = {span.span_id for span in collector.of_name(f"forward {out.name}")}
    assert len(hops) == number
    assert {span.parent_id for span in collector.of_name(f"send {goal.name}")} <= hops
