"""Draining an RQP edge with work that exceeds the timeout: it is ended and counted, without an error."""

from __future__ import annotations

import asyncio
import logging

from protos.rqp_cast import Result
from services.kit.config.settings import DrainSettings
from services.kit.process.drain import drain
from tests.live import until
from tests.rqp.cast.hands import HandReceiver, HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, agent, ended, is_reserved, keyed, remote
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.servers import Server

LONG_S = 600.0
BRIEF = DrainSettings(spread_s=0.0, timeout_s=0.2)


async def drained(edge: LiveEdge) -> None:
    """Drain the edge as by SIGTERM; check that no error is logged."""
    assert edge.running is not None
    running, edge.running = edge.running, None  # it is closed here, and only once
    groups = [*edge.listeners.values(), *edge.diallers]
    assert await drain(groups, running, BRIEF, asyncio.Event())
    assert [line.getMessage() for line in edge.log.lines if line.levelno >= logging.ERROR] == []
    assert len(edge.log.events("drain_cut_short")) == 1


async def test_drain_timeout_ends_sessions(machines: Machines, hands: HandSender) -> None:
    """Check that the drain timeout ends sessions and frees their queues (rqp_cast.md 5.1).

    One waits for its approval, and one for its message.
    """
    edge = await machines.receiver(t_wait2_s=LONG_S, t_wait3_s=LONG_S)
    queues = [await keyed(edge, f"queue {key}", key) for key in (7, 8)]
    await hands.approve(await hands.asked(7))
    await hands.asked(8)
    await drained(edge)
    assert ended(edge, "stopped") == 2
    for queue in queues:
        assert not await is_reserved(edge, queue)


async def test_draining_edge_answers_no_questions(machines: Machines, hands: HandSender) -> None:
    """Check that a draining edge answers no questions, also while another agent is slow to end."""
    edge = await machines.receiver(t_wait2_s=LONG_S)
    await keyed(edge)
    agents = edge.service.agents

    class Slow:
        def start(self) -> None: ...

        async def stop_taking(self) -> None:
            await asyncio.Event().wait()

        async def close(self) -> None: ...

    agents.insert(0, Slow())
    draining = asyncio.create_task(edge.service.stop_taking())
    await until(lambda: agent(edge).questions.is_closed)
    draining.cancel()
    await asyncio.wait((draining,))
    agents.pop(0)


async def test_drain_timeout_returns_the_message_in_flight(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that the drain timeout returns the message in flight (rqp_cast.md 2.3, 4.2).

    The next owner resends it with the same id to the same receiver.
    """
    edge = await machines.sender(t_wait4_s=LONG_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    first = await receiver.chosen()
    await receiver.data()
    await drained(edge)
    assert await edge.bodies(queue) == [b"hello"]
    await machines.sender("127.0.0.4")
    receiver.asked()
    receiver.other = "127.0.0.4"
    await receiver.question()
    await receiver.offer()
    second = await receiver.approval()
    assert (second.id, second.address) == (first.id, HERE)
    assert (await receiver.data())[12:] == b"hello"
    await receiver.confirm(second, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_drain_does_not_wait_for_missing_confirmations(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a drain does not wait for missing confirmations: the message returns to its place (rqp_mca.md 3.6)."""
    edge = await start(server, mca={"peers": peer_settings(peer), "data_timeout_s": LONG_S})
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await drained(edge)
    await call.ended()
    assert await edge.bodies(queue) == [b"one", b"two"]
    assert edge.value("penstock_rqp_owned_queues", protocol="rqp-mca") == 0
