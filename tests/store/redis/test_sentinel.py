"""A failover under Sentinels keeps what `replicated:1` acknowledged (docs/store.md, ack levels)."""

import pytest

from services.store import Outcome, PipeSettings
from services.store.model.errors import AckLevelRefused, OutcomeUnknown, StoreUnavailable
from tests.servers import Server, eventually
from tests.store.desk import Desk, numbered, until
from tests.store.member import member
from tests.store.requesting import Node, request_id
from tests.store.traffic import Traffic
from tests.topologies import Replicated

PATIENT = PipeSettings(patience_s=20.0)


def generation(primary: Server) -> int:
    return int(primary.call("GET", "ps:{main}:epoch").partition(b".")[2])


async def more(traffic: Traffic, count: int = 200) -> None:
    """Wait until `count` more messages were acknowledged, and more settled."""
    stored, seen = len(traffic.stored) + count, len(traffic.seen) + count
    await until(lambda: len(traffic.stored) > stored and len(traffic.seen) > seen)


async def test_fsync_level_is_refused_with_failovers(whole_replicated: Replicated) -> None:
    """Check that fsync is refused, as one server's disk guarantees nothing after a failover."""
    async with Desk(whole_replicated.url) as desk:
        with pytest.raises(AckLevelRefused, match="use replicated:1"):
            await desk.queue(ack_level="fsync")
        with pytest.raises(AckLevelRefused, match="needs 3 replicas, this store has 2"):
            await desk.queue(ack_level="replicated:3")
        queue = await desk.queue(ack_level="replicated:2")
        await desk.put(queue, *numbered(100))
        for node in whole_replicated.nodes:
            assert node.call("EXISTS", queue.keys[0]) == 1, "acknowledged before it was on every server"


@pytest.mark.parametrize(
    ("server_program", "fault"), [("valkey", "killed"), ("redis", "stopped")], indirect=["server_program"]
)
async def test_failover_loses_no_acknowledged_message(replicated: Replicated, fault: str) -> None:
    """Check this with the old primary killed, or stopped until it continues without replicas."""
    async with Desk(replicated.url, pipe=PATIENT) as desk, member(replicated.url, "tmq"):
        traffic = Traffic(desk, await desk.queue(ack_level="replicated:1"))
        traffic.start()
        await more(traffic)
        old, before = replicated.primary(), generation(replicated.primary())
        if fault == "killed":
            old.kill9()
        else:
            old.stop()
        await until(lambda: replicated.primary() is not old)
        if fault == "stopped":
            old.cont()
        await more(traffic)
        new = replicated.primary()
        assert generation(new) == before + 1
        assert desk.refusals["new_generation"] <= 1  # 0 if the other process was first
        await until(lambda: answered(desk))  # processes write their directory entries again if they were lost
        await traffic.stop()
        await traffic.check()
        if fault == "killed":
            old.restart()
        eventually(lambda: replicated.replicas(new) == 2)
        eventually(lambda: old.call("GET", "ps:{main}:epoch") == new.call("GET", "ps:{main}:epoch"))


async def answered(desk: Desk) -> bool:
    try:
        return bool((await desk.store.processes.inquire("numbers", wait_s=0.5)).answers)
    except StoreUnavailable:
        return False


async def test_nothing_is_acknowledged_without_replicas(whole_replicated: Replicated) -> None:
    """Check that the outcome is unknown if the primary has the message but the replicas hang."""
    quick, replicated = PipeSettings(request_timeout_s=1.0), whole_replicated
    async with Desk(replicated.url, pipe=quick) as desk:
        queue = await desk.queue(ack_level="replicated:2")
        memory = await desk.queue("memory", ack_level="memory")
        replica = next(node for node in replicated.nodes if node is not replicated.primary())
        replica.stop()
        try:
            with pytest.raises(OutcomeUnknown):
                await desk.put(queue, b"x")
            for _ in range(2):  # the repeat gets the same answer (ring.md 5.4)
                with pytest.raises(OutcomeUnknown):
                    await Node(desk).push(request_id(1), queue, b"once")
            await desk.put(memory, b"y")  # others do not wait for that replica
        finally:
            replica.cont()
        await until(lambda: replicated.replicas(replicated.primary()) == 2)
        await desk.put(queue, b"z")
        assert await Node(desk).push(request_id(1), queue, b"once") is Outcome.AGAIN
        assert await desk.drain(queue) == [b"x", b"once", b"z"]
