"""Around a ring: who asks and who serves make a context of the request's id (docs/tracing.md, ring.md 5.3)."""

from __future__ import annotations

from services.ring.asking import Brought
from tests.ring.users.members import Member, Ring
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder


async def test_a_push_and_a_pull_around(
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
        assert isinstance(answer, Brought)
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
    # what is on its way through the nodes' own queues begins no traces
    assert {span.attributes["messaging.destination.name"] for span in collector.spans()} == {"orders"}
