"""What a sending agent of RQP/cast makes of confirmations, and of those that do not come (rqp_cast.md 4.2)."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from protos.rqp_cast import EndTransmissionMsg, Result, encode_end_transmission
from services.store.deadletters.dead_letters import DeadLetters
from services.store.model.clock import Clock
from tests.live import PATIENCE_S, until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, failed, got_through, remote, unheard
from tests.rqp.cast.steps import LARGE, Closed
from tests.rqp.live import LiveEdge


async def test_a_confirmation_that_is_lost(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: after T_WAIT4 it is sent again: with the same id, to the same receiver only."""
    edge = await machines.sender(t_wait4_s=1.0, asks=(THERE, "127.0.0.3"))
    queue = await remote(edge)
    with HandReceiver(machines.net, "127.0.0.3") as other:
        await edge.put(queue, b"hello")
        first = await receiver.chosen()
        assert await receiver.data()
        await until(lambda: failed(edge, "not_confirmed") == 1)
        assert other.asked()
        await until(
            lambda: is_refused(edge, receiver, other, "not_listed")
        )  # only the receiver was asked (3.1)
        assert other.asked() == 0
        second = await receiver.chosen()
        assert second.id == first.id
        assert (await receiver.data())[12:] == b"hello"
        await receiver.confirm(second, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))
    assert edge.value("penstock_rqp_unconfirmed_messages_total", protocol="rqp-cast") == 1


async def is_refused(edge: LiveEdge, asked: HandReceiver, other: HandReceiver, reason: str) -> bool:
    """Whether an answer of `other` to the next question was refused so; one that comes too late is not."""
    await asked.question()
    await other.offer(address=other.host)
    return unheard(edge, reason) > 0


async def test_a_bound_message_whose_receiver_is_listed_no_more(
    machines: Machines, receiver: HandReceiver
) -> None:
    """3.1, 4.2: then all are asked, and `other_receiver` may not have it."""
    net = machines.net
    edge = await machines.sender(t_wait4_s=0.4, asks=(THERE, "127.0.0.3"))
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.chosen()
    await receiver.data()
    await until(lambda: failed(edge, "not_confirmed") == 1)
    await agent(edge).close()
    with HandReceiver(net, "127.0.0.3", "127.0.0.4") as other:
        moved = await machines.sender("127.0.0.4", asks=("127.0.0.3",), t_wait1_s=PATIENCE_S)
        await other.question()
        await other.offer(address="127.0.0.3")
        await until(lambda: unheard(moved, "other_receiver") == 1)


async def test_a_failure_is_tried_again_after_a_pause(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: 1 s doubling to 60 s, here shorter; the others of the queue go on meanwhile."""
    edge = await machines.sender(first_backoff_s=0.6, max_backoff_s=0.6, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"first", b"second")
    assert await receiver.receive(Result.FAILURE) == b"first"
    assert await receiver.receive(Result.SUCCESS) == b"second"
    assert await receiver.receive(Result.SUCCESS) == b"first"
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "failure") == 1
    assert got_through(edge) == 2


async def test_a_message_that_is_always_refused_is_dead(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: `max_attempts` FAILUREs, then the dead letters, with the reason `unconfirmed`, never silently away."""
    edge = await machines.sender(max_attempts=3, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    ids = set()
    for _ in range(3):
        approval = await receiver.chosen()
        ids.add(approval.id)
        assert (await receiver.data())[12:] == b"hello"
        await receiver.confirm(approval, Result.FAILURE)
    await until(lambda: edge.is_empty(queue))
    assert len(ids) == 1
    (letter,) = await edge.dead(queue)
    assert (letter.reason, letter.error, letter.body) == (
        "unconfirmed",
        f"3 times FAILURE, the last from {THERE}",
        b"hello",
    )
    await until(lambda: failed(edge, "unconfirmed") == 1)
    await until(lambda: edge.has_no_condition(queue))


async def test_failure_before_the_last_octet(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: it counts, and binds the message to nobody."""
    edge = await machines.sender()
    queue = await remote(edge, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    approval = await receiver.chosen()
    await receiver.octets(await receiver.accept(receiver.data_port))
    await receiver.confirm(approval, Result.FAILURE)
    await until(lambda: failed(edge, "failure") == 1)
    assert await receiver.receive() == LARGE
    await until(lambda: edge.is_empty(queue))


async def test_confirmations_that_are_not_for_this_message(
    machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: another id, another address, no message at all: closed and counted, and the listening goes on."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.confirm(approval, Result.SUCCESS, id=approval.id ^ 1)
    await until(lambda: unheard(edge, "other_id") + unheard(edge, "not_awaited") == 1)
    await receiver.data()
    await receiver.confirm(approval, Result.SUCCESS, id=approval.id ^ 1)
    await until(lambda: unheard(edge, "other_id") + unheard(edge, "not_awaited") == 2)
    await receiver.confirm(approval, Result.SUCCESS, host="127.0.0.77")
    await until(lambda: unheard(edge, "foreign_source") == 1)
    await receiver.say(approval.endtransmission_port, b"\x7f\0\0\2\0\0\0\0\7")
    await until(lambda: edge.value("penstock_rqp_cast_faults_total", reason="unknown_result") == 1)
    await receiver.connect(approval.endtransmission_port)  # says nothing
    assert not await edge.is_empty(queue)
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_a_confirmation_before_the_data_is_not_awaited(
    machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: nothing was sent that it could be true of."""
    edge = await machines.sender(connect_timeout_s=5.0, t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    port = receiver.data_port.getsockname()[1]
    receiver.data_port.close()
    await receiver.question()
    receiver.data_port = Closed(port)
    await receiver.offer()
    approval = await receiver.approval()
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: unheard(edge, "not_awaited") == 1)
    receiver.data_port = receiver.listen(port)
    assert (await receiver.data())[12:] == b"hello"
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_a_message_that_is_too_old_to_be_repeated_is_held(
    machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: its receiver may have forgotten it: an alarm; the other messages go on. Put in anew, it is another one."""
    edge = await machines.sender(t_wait4_s=0.3, t_wait1_s=0.1, dedupe_window_s=1.0, hold_margin_s=0.9)
    queue = await remote(edge)
    await edge.put(queue, b"old")
    first = await receiver.chosen()
    await receiver.data()
    await until(lambda: edge.value("penstock_rqp_cast_held_messages_total") == 1)
    told = [line.getMessage() for line in edge.log.events("rqp_stuck", queue="out")]  # each lasts a moment
    assert told[0] == "nothing gets through: not_confirmed: the receiver 127.0.0.2 does not confirm"
    assert len(edge.log.events("cast_held", queue="out")) == 1
    await edge.put(queue, b"new")
    receiver.asked()
    assert await receiver.receive() == b"new"
    (letter,) = await edge.dead(queue)
    found = (letter.reason, letter.error, letter.body)
    assert found == ("held", "sent to 127.0.0.2, which may have forgotten it", b"old")
    letters = DeadLetters(edge.tools.open_domain(queue.domain), queue)
    assert (await letters.redrive([letter.id])).moved == 1
    again = await receiver.chosen()
    assert (await receiver.data())[12:] == b"old"
    assert again.id != first.id
    await receiver.confirm(again, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_a_machine_that_slept_repeats_nothing_that_may_be_forgotten(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.2: all time counts, also that in which the machine, and the loop's clock, stood still."""
    slept_s = 0.0
    heard, gettime = Clock.heard, time.clock_gettime

    def told_ms(clock: Clock, told: int, asked_s: float) -> None:
        heard(clock, told + round(slept_s * 1000), asked_s)

    def told_s(clock: int) -> float:
        return gettime(clock) + (slept_s if clock == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(Clock, "heard", told_ms)
    monkeypatch.setattr(time, "clock_gettime", told_s)
    owns = {"outbox": {"lease_s": 7 * 24 * 3600.0}}  # or the sleep ends an attempt anywhere, as it may
    edge = await machines.sender(t_wait4_s=0.3, edge=owns)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    for _ in range(2):
        await receiver.chosen()
        await receiver.data()
        slept_s += 12 * 3600.0
    await until(lambda: edge.value("penstock_rqp_cast_held_messages_total") == 1)
    assert [letter.reason for letter in await edge.dead(queue)] == ["held"]


async def test_a_confirmation_that_waited_unread_counts(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: what it says is true, also where nobody looked before T_WAIT4 was over."""
    edge = await machines.sender(t_wait4_s=1.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    stalled = asyncio.Event()

    def stall() -> None:
        """Within the loop's turn of reading: its clock is looked at again before anything else is read."""
        message = encode_end_transmission(EndTransmissionMsg(THERE, approval.id, Result.SUCCESS))
        place = (HERE, approval.endtransmission_port)
        with socket.create_connection(place, source_address=(THERE, 0)) as sock:
            sock.sendall(message)
        time.sleep(1.2)
        loop.remove_reader(woken)
        stalled.set()

    loop = asyncio.get_running_loop()
    woken, wakes = socket.socketpair()
    with woken, wakes:
        loop.add_reader(woken, stall)
        wakes.send(b"x")
        await stalled.wait()
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "not_confirmed") == 0


async def test_silent_connections_do_not_keep_the_confirmation_out(
    machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: however many there are, the listening goes on."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    silent = [await receiver.connect(approval.endtransmission_port) for _ in range(12)]
    assert await receiver.is_closed(silent[0])
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
