"""Parallel sending agents of RQP/cast: keys, queues, ports, processes (rqp_cast.md 1, 4.4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from protos.rqp_cast import Result
from tests.live import until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, got_through, keyed, port_range, remote
from tests.rqp.live import LiveEdge
from tests.rqp.program import EdgeProgram
from tests.servers import Server

NewServer = Callable[[], Awaitable[Server]]


async def test_ids_are_unique(machines: Machines, receiver: HandReceiver) -> None:
    """Check that messages are sent in order, each with a unique id (2.3, 4.4)."""
    edge = await machines.sender()
    queue = await remote(edge)
    bodies = [b"%d" % number for number in range(40)]
    await edge.put(queue, *bodies)
    ids = set()
    for body in bodies:
        approval = await receiver.chosen()
        ids.add(approval.id)
        assert (await receiver.data())[12:] == body
        await receiver.confirm(approval, Result.SUCCESS)
    assert len(ids) == 40
    await until(lambda: edge.is_empty(queue))


async def test_keys_are_sent_side_by_side(machines: Machines, receiver: HandReceiver) -> None:
    """Check that keys are sent in parallel: one that waits for its confirmation blocks no other (4.4)."""
    edge = await machines.sender()
    first, second = await remote(edge, "first", 1), await remote(edge, "second", 2)
    await edge.put(first, b"one")
    await receiver.question()
    await receiver.offer(1)
    waiting = await receiver.approval()
    await receiver.data()
    await edge.put(second, b"two")
    assert (await receiver.question()).key == 2
    await receiver.offer(2)
    approval = await receiver.approval()
    assert approval.endtransmission_port != waiting.endtransmission_port
    assert (await receiver.data())[12:] == b"two"
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(second))
    await receiver.confirm(waiting, Result.SUCCESS)
    await until(lambda: edge.is_empty(first))


async def test_two_queues_for_one_key_take_turns(machines: Machines, receiver: HandReceiver) -> None:
    """Check that two queues for one key take turns: its messages are sent one after the other (4.4)."""
    edge = await machines.sender()
    queues = [await remote(edge, name) for name in ("first", "second")]
    for queue in queues:
        await edge.put(queue, queue.name.encode())
    found = []
    for _ in queues:
        approval = await receiver.chosen()
        assert receiver.asked() == 0
        found.append((await receiver.data())[12:])
        await receiver.confirm(approval, Result.SUCCESS)
    assert sorted(found) == [b"first", b"second"]


async def test_queues_for_one_key_of_two_systems_are_independent(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that queues for one key of two systems are independent (4.4).

    An unreachable system does not block the other; answers count for attempts that asked their machine.
    """
    groups = {
        "near": {"addresses": [machines.net.at(THERE)]},
        "far": {"addresses": [machines.net.at("127.0.0.3")]},
    }
    edge = await machines.sender(asks=(), peers=groups, t_wait1_s=60.0)
    near, far = await remote(edge, "near", peers=["near"]), await remote(edge, "far", peers=["far"])
    with HandReceiver(machines.net, "127.0.0.3") as other:
        await edge.put(far, b"to the far one")
        await other.question()
        for body in (b"one", b"two"):
            await edge.put(near, body)
            assert await receiver.receive() == body
        await other.offer(address="127.0.0.3")
        approval = await other.approval()
        assert (await other.data())[12:] == b"to the far one"
        await other.confirm(approval, Result.SUCCESS)
    for queue in (near, far):
        await until(partial(edge.is_empty, queue))


@pytest.mark.parametrize("peers", [[], ["near"], ["near", "far"], ["same"]])
async def test_queues_for_one_key_and_machine_take_turns(
    machines: Machines, receiver: HandReceiver, peers: list[str]
) -> None:
    """Check that queues for one key and machine take turns, for any names of their groups (4.4)."""
    near = {"addresses": [machines.net.at(THERE)]}
    groups = {"near": near, "same": near, "far": {"addresses": [machines.net.at("127.0.0.3")]}}
    edge = await machines.sender(asks=(), peers=groups)
    queues = [await remote(edge, "first", peers=["near"]), await remote(edge, "second", peers=peers)]
    for queue in queues:
        await edge.put(queue, queue.name.encode())
    found = []
    for _ in queues:
        approval = await receiver.chosen()
        assert receiver.asked() == 0
        found.append((await receiver.data())[12:])
        await receiver.confirm(approval, Result.SUCCESS)
    assert sorted(found) == [b"first", b"second"]


async def test_attempts_wait_for_a_port(machines: Machines, receiver: HandReceiver) -> None:
    """Check that attempts wait for a port while all endtransmission_ports are open (1.2)."""
    edge = await machines.sender(sender_ports=port_range(1))
    first, second = await remote(edge, "first", 1), await remote(edge, "second", 2)
    await edge.put(first, b"one")
    await receiver.question()
    await receiver.offer(1)
    approval = await receiver.approval()
    await receiver.data()
    await edge.put(second, b"two")
    await asyncio.sleep(0.3)
    assert receiver.asked() == 0
    await receiver.confirm(approval, Result.SUCCESS)
    assert (await receiver.question()).key == 2
    await until(lambda: edge.is_empty(first))


async def test_only_one_process_of_a_machine_sends(machines: Machines, receiver: HandReceiver) -> None:
    """Check that only one process of a machine sends: the next one takes findreceiver_port when it ends (1)."""
    first = await machines.sender()
    second = await machines.sender()
    queue = await remote(first)
    await first.put(queue, b"one")
    assert await receiver.receive() == b"one"
    await until(lambda: first.is_empty(queue))
    assert got_through(second) == 0
    await agent(first).close()
    await second.put(queue, b"two")
    assert await receiver.receive() == b"two"
    await until(lambda: second.is_empty(queue))


async def test_findreceiver_port_of_another_program_is_logged(machines: Machines) -> None:
    """Check that a findreceiver_port used by another program is logged, and nothing is sent (1).

    A process that waits for another Penstock process logs no warning.
    """
    with HandReceiver(machines.net, HERE) as foreign:
        taken = foreign.listen(machines.net.findreceiver_port)
        edge = await machines.sender(edge={"outbox": {"renew_s": 0.1}})
        await remote(edge)
        await until(lambda: warnings(edge))
        taken.close()
    await until(lambda: edge.value("penstock_rqp_owned_queues", protocol="rqp-cast") == 1)
    second = await machines.sender(edge={"outbox": {"renew_s": 0.1}})
    port = machines.net.findreceiver_port
    assert warnings(edge) == [
        f"messages of 'out' are not sent: another program uses TCP port {port} (findreceiver_port), and it is no edge "
        "of this store; stop it or change the port on all machines"
    ]
    await asyncio.sleep(0.5)  # it polls several times
    assert warnings(second) == []


def warnings(edge: LiveEdge) -> list[str]:
    found = edge.log.events("findreceiver_taken")
    return [line.getMessage() for line in found if line.levelno == logging.WARNING]


async def test_workers_of_one_machine(new_server: NewServer, machines: Machines, tmp_path: Path) -> None:
    """Check that all workers of a machine receive, on one port range, and one sends (1, 4.4)."""
    near, far = await new_server(), await new_server()
    here = await machines.receiver("127.0.0.9", near, receives=False)
    there = await machines.receiver("127.0.0.8", far, receives=False)
    keys = range(1, 7)
    outs = [await remote(here, f"out {key}", key) for key in keys]
    goals = [await keyed(there, f"goal {key}", key) for key in keys]
    net = machines.net
    receiving = {"cast": net.machine(THERE, sends=False), "workers": 2}
    sending = {"cast": net.machine(HERE, THERE, receives=False), "workers": 2}
    async with EdgeProgram(far.url, tmp_path, receiving), EdgeProgram(near.url, tmp_path, sending):
        for out in outs:
            await here.put(out, *(b"%d" % number for number in range(20)))
        for out in outs:
            await until(partial(here.is_empty, out))
    for goal in goals:
        found = await there.bodies(goal)
        assert sorted(found) == sorted(b"%d" % number for number in range(20))


async def test_handover_keeps_the_order(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a handover keeps the order: prefetched messages return before another may own the queue (4.4)."""
    first = await machines.sender()
    second = await machines.sender()
    queue = await remote(first)
    await first.put(queue, *(b"%03d" % number for number in range(60)))
    for number in range(5):
        assert await receiver.receive() == b"%03d" % number
    await agent(first).stop_taking()
    assert (await first.bodies(queue))[:5] == [b"%03d" % number for number in range(5, 10)]
    await agent(first).close()
    receiver.asked()
    for number in range(5, 12):
        assert await receiver.receive() == b"%03d" % number
    await until(lambda: got_through(second) == 7)
