"""RQP/cast from one system to another: two edges with a store each (rqp_cast.md 3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from protos.rqp_cast import QuestionMsg, Result, encode_question
from services.store import Queue
from services.store.model.errors import MessageTooLarge
from tests.live import until
from tests.rqp.cast.hands import HandReceiver, Hands
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import (
    HERE,
    KEY,
    THERE,
    ended,
    failed,
    got_through,
    keyed,
    port_range,
    remote,
    unanswered,
    unheard,
)
from tests.rqp.cast.steps import LARGE
from tests.rqp.live import LiveEdge
from tests.servers import Server

NewServer = Callable[[], Awaitable[Server]]


async def has(edge: LiveEdge, queue: Queue, count: int) -> bool:
    return bool((await edge.stats(queue))["ready"] == count)


@pytest.mark.parametrize("reliable", [True, False])
async def test_queue_is_sent_to_another_system(
    new_server: NewServer, machines: Machines, reliable: bool
) -> None:
    """Check that a queue is sent to another system in order, each message once (3)."""
    there = await machines.receiver(server=await new_server())
    here = await machines.sender()
    goal, out = await keyed(there), await remote(here, reliable=reliable)
    bodies = [b"%d" % number for number in range(100)]
    await here.put(out, *bodies)
    await until(lambda: has(there, goal, 100))
    assert await there.bodies(goal) == bodies
    await until(lambda: here.is_empty(out))
    await until(lambda: got_through(here) == ended(there, "stored") == 100)


async def test_duplicated_question_blocks_no_queue(new_server: NewServer, machines: Machines) -> None:
    """Check that a duplicated question blocks no queue (3.3).

    Its second answer comes after the message was stored, and does not block the queue.
    """
    there = await machines.receiver(server=await new_server(), t_wait2_s=600.0)
    here = await machines.sender()
    goal, out = await keyed(there), await remote(here)
    with Hands(machines.net, HERE, THERE) as network:
        doubled = encode_question(QuestionMsg(HERE, KEY))
        network.datagrams().sendto(doubled, (THERE, machines.net.request_port))
    await until(lambda: unheard(here, "not_asked") == 1)
    await until(lambda: ended(there, "declined") == 1)
    await here.put(out, b"hello")
    await until(lambda: has(there, goal, 1))
    assert failed(here, "no_answer") == 0


async def test_many_keys_are_sent_side_by_side(new_server: NewServer, machines: Machines) -> None:
    """Check that many keys are sent in parallel, each in order (1.2, 4.4).

    There are more than one machine may have sessions, and more than there are ports.
    """
    there = await machines.receiver(server=await new_server(), t_wait1_s=10.0, receiver_ports=port_range(14))
    here = await machines.sender(t_wait1_s=10.0)
    keys = range(1, 17)
    goals = [await keyed(there, f"goal {key}", key) for key in keys]
    outs = [await remote(here, f"out {key}", key) for key in keys]
    for key, out in zip(keys, outs, strict=True):
        await here.put(out, *(b"%d of %d" % (number, key) for number in range(10)))
    for key, goal in zip(keys, goals, strict=True):
        await until(lambda goal=goal: has(there, goal, 10))
        assert await there.bodies(goal) == [b"%d of %d" % (number, key) for number in range(10)]
    assert failed(here, "no_answer") == 0


async def test_message_too_large_for_the_receiver_is_dead_lettered(
    new_server: NewServer, machines: Machines
) -> None:
    """Check that a message too large for the receiver is dead-lettered (4.2, 5.2).

    Each attempt is answered FAILURE, though it comes in the middle, so the attempts end.
    """
    there = await machines.receiver(server=await new_server(), max_message_bytes=100)
    here = await machines.sender(max_attempts=2)
    goal, out = await keyed(there), await remote(here, maxMessageBytes=len(LARGE))
    await here.put(out, LARGE, b"small")
    await until(lambda: here.is_empty(out))
    (letter,) = await here.dead(out)
    assert (letter.reason, letter.error) == ("unconfirmed", f"2 times FAILURE, the last from {THERE}")
    assert await there.bodies(goal) == [b"small"]
    assert ended(there, "message_too_large") == 2
    assert failed(here, "cut_short") == 0


async def test_messages_wait_while_the_remote_queue_is_full(
    new_server: NewServer, machines: Machines
) -> None:
    """Check that messages wait while the remote queue is full (3.2).

    A receiver that cannot accept a message does not answer; this does not count as a failure.
    """
    there = await machines.receiver(server=await new_server())
    here = await machines.sender(t_wait1_s=0.1)
    goal, out = await keyed(there, maxLength=1), await remote(here)
    await here.put(out, b"one", b"two")
    await until(lambda: has(there, goal, 1))
    await until(lambda: unanswered(there, "unavailable") >= 2)
    await there.declare("elsewhere")
    await there.tools.catalogue.declare(
        goal.name, goal.spec.model_copy(update={"max_length": 2}), "test", replace=True
    )
    await until(lambda: has(there, goal, 2))
    await until(lambda: here.is_empty(out))
    assert failed(here, "failure") == 0


async def test_message_too_large_for_peers_is_refused(new_server: NewServer, machines: Machines) -> None:
    """Check that a message too large for peers is refused.

    5.2: `remote.maxMessageBytes` is the peers' limit, checked when a message is put in.
    """
    here = await machines.sender()
    out = await remote(here, maxMessageBytes=10)
    with pytest.raises((MessageTooLarge, AssertionError)):
        await here.put(out, b"x" * 11)
    assert await here.is_empty(out)


async def test_each_message_goes_to_one_of_two_receivers(new_server: NewServer, machines: Machines) -> None:
    """Check that each message goes to one of two receivers, the first to answer (3.3)."""
    receivers = [
        await machines.receiver(host, server=await new_server()) for host in ("127.0.0.2", "127.0.0.3")
    ]
    here = await machines.sender(asks=("127.0.0.2", "127.0.0.3"))
    goals = [await keyed(each) for each in receivers]
    out = await remote(here)
    bodies = [b"%d" % number for number in range(60)]
    await here.put(out, *bodies)
    await until(lambda: here.is_empty(out))
    found = [body for each, goal in zip(receivers, goals, strict=True) for body in await each.bodies(goal)]
    assert sorted(found) == sorted(bodies)


async def test_deleting_a_queue_in_flight_does_not_affect_others(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that deleting a queue in flight does not affect others (4).

    The confirmation of its message in flight is ignored; other queues are sent.
    """
    edge = await machines.sender()
    doomed, other = await remote(edge, "doomed", 8), await remote(edge, "other", 7)
    await edge.put(doomed, b"gone")
    approval = await receiver.chosen(8)
    await receiver.data()
    await edge.tools.catalogue.delete(doomed)
    await receiver.confirm(approval, Result.SUCCESS)
    await edge.put(other, b"hello")
    assert await receiver.receive() == b"hello"
    await until(lambda: edge.is_empty(other))
    await until(lambda: edge.value("penstock_rqp_owned_queues", protocol="rqp-cast") == 1)
