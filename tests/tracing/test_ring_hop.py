"""Rings: client and server derive a context from the request's id (docs/tracing.md, ring.md 5.3)."""

from __future__ import annotations

from services.ring.remote_queues import RemoteMessage
from tests.live import until
from tests.ring.users.members import Member, Ring
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder


async def test_push_and_pull_across_a_ring(
    new_server: NewServer, recorder: NewRecorder, collector: Collector
) -> None:
    asks, serves = [
        await Member((await new_server()).url, name, recorder=recorder("ring")).start()
        for name in (b"asks", b"serves")
    ]
    try:
        await serves.declare("orders")
        Ring([asks, serves])
        assert await asks.push(b"orders", b"a pump") is None
        answer = await asks.pull(b"orders")
        assert isinstance(answer, RemoteMessage)
        assert answer.body == b"a pump"
        answer.settle()
        pushed, stored, pulled, given, settled = await collector.has(
            "push orders", "send orders", "pull orders", "receive orders", "settle orders"
        )
    finally:
        await asks.close()
        await serves.close()
    assert pushed.trace_id == stored.trace_id == given.trace_id == settled.trace_id
    assert (pushed.parent_id, stored.parent_id) == ("", pushed.span_id)
    assert (given.parent_id, settled.parent_id) == (stored.span_id, given.span_id)
    assert pulled.trace_id != pushed.trace_id
    assert given.links == [(pulled.trace_id, pulled.span_id)]
    assert given.attributes["penstock.outcome"] == "settled"
    # messages in the nodes' own queues do not start traces
    assert {span.attributes["messaging.destination.name"] for span in collector.spans()} == {"orders"}


async def test_id_alone_decides_sampling(
    new_server: NewServer, recorder: NewRecorder, collector: Collector
) -> None:
    """Unsampled ids begin no trace at random."""
    recorders = recorder("ring"), recorder("ring", ratio=0.5)
    asks, serves = [
        await Member((await new_server()).url, name, recorder=each).start()
        for name, each in zip((b"asks", b"serves"), recorders, strict=True)
    ]
    try:
        await serves.declare("orders")
        Ring([asks, serves])
        for number in range(16):
            assert await asks.push(b"orders", b"%d" % number) is None
    finally:
        await asks.close()
        await serves.close()
    for each in recorders:
        await each.close()
    pushed = {span.span_id for span in collector.of_name("push orders")}
    assert len(pushed) == 16
    assert {span.parent_id for span in collector.of_name("send orders")} <= pushed


async def test_forwarded_message_begins_no_trace(
    new_server: NewServer, recorder: NewRecorder, collector: Collector
) -> None:
    """From outbox to inbox, also across domains: nodes' own queues are not traced."""
    traces = recorder("ring")
    begins, keeps = [
        await Member((await new_server()).url, name, recorder=traces).start()
        for name in (b"begins", b"keeps")
    ]
    try:
        await begins.declare("out", bindings={"ring": {"outbox": 1}}, domain="elsewhere")
        inbox = await keeps.declare("in", bindings={"ring": {"inbox": 1}})
        Ring([begins, keeps])
        await begins.put("out", b"a pump")
        await until(lambda: keeps.bodies(inbox.name))
    finally:
        await begins.close()
        await keeps.close()
    await traces.close()
    named = {span.attributes["messaging.destination.name"] for span in collector.spans()}
    assert named == {"out", "in"}
