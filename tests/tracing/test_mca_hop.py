"""RQP/MCA's frames have no id: each system has a trace of its own, and the sender's tells of the attempt."""

from __future__ import annotations

from services.store.asking import Asker
from tests.live import until
from tests.rqp.live import LiveEdge
from tests.stores import NewServer
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder


async def test_both_ends_tell_their_own(
    new_server: NewServer, recorder: NewRecorder, collector: Collector
) -> None:
    there, here = LiveEdge((await new_server()).url), None
    there.recorder = recorder("rqp")
    await there.start()
    try:
        goal = await there.numbered("orders", 7)
        here = LiveEdge((await new_server()).url, mca={"peers": {"there": {"addresses": [there.address]}}})
        here.recorder = recorder("rqp")
        await here.start()
        queue = await here.remote("away")
        pipe = here.service.pipe(queue)
        await pipe.ready()
        assert await Asker(pipe).publish(queue, [b"\0\0\0\6a pump"], "test") == []
        await until(lambda: here is not None and here.is_empty(queue))
        put, attempt, left, came = await collector.has(
            "send away", "forward away", "settle away", f"send {goal.name}"
        )
    finally:
        for edge in filter(None, (here, there)):
            await edge.close()
    assert {span.trace_id for span in (put, attempt, left)} == {put.trace_id}
    assert attempt.attributes["penstock.outcome"] == "sent"
    assert attempt.attributes["network.peer.address"]
    assert attempt.links == []
    assert came.trace_id != put.trace_id
    assert came.attributes["penstock.origin"].startswith("mca ")
