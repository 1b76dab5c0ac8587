"""Confirmations at a sending agent of RQP/cast, and missing ones (rqp_cast.md 4.2)."""

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


async def test_lost_confirmation_causes_a_resend(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a lost confirmation causes a resend after T_WAIT4.

    4.2: it has the same id, and goes to the same receiver only.
    """
    edge = await machines.sender(t_wait4_s=1.0, asks=(THERE, "127.0.0.3"))
    queue = await remote(edge)
    with HandReceiver(machines.net, "127.0.0.3") as other:
        await edge.put(queue, b"hello")
        first = await receiver.chosen()
        assert await receiver.data()
        await until(lambda: failed(edge, "not_confirmed") == 1)
        assert other.asked()
        # only the receiver was asked (3.1)
        await until(lambda: is_refused(edge, receiver, other, "not_listed"))
        assert other.asked() == 0
        second = await receiver.chosen()
        assert second.id == first.id
        assert (await receiver.data())[12:] == b"hello"
        await receiver.confirm(second, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))
    assert edge.value("penstock_rqp_unconfirmed_messages_total", protocol="rqp-cast") == 1


async def is_refused(edge: LiveEdge, asked: HandReceiver, other: HandReceiver, reason: str) -> bool:
    """Return whether the answer of `other` to the next question was refused so; a late answer is not."""
    await asked.question()
    await other.offer(address=other.host)
    return unheard(edge, reason) > 0


async def test_bound_message_of_an_unlisted_receiver_asks_all(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that a bound message of an unlisted receiver asks all machines (3.1, 4.2).

    `other_receiver` may not have it.
    """
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


async def test_failure_is_retried_with_backoff(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a failure is retried with back-off.

    4.2: 1 s doubling to 60 s, here shorter; other messages are sent meanwhile.
    """
    edge = await machines.sender(first_backoff_s=0.6, max_backoff_s=0.6, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"first", b"second")
    assert await receiver.receive(Result.FAILURE) == b"first"
    assert await receiver.receive(Result.SUCCESS) == b"second"
    assert await receiver.receive(Result.SUCCESS) == b"first"
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "failure") == 1
    assert got_through(edge) == 2


async def test_message_always_refused_is_dead_lettered(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a message that is always refused is dead-lettered with reason `unconfirmed` (4.2).

    This happens after `max_attempts` FAILUREs; it is never dropped silently.
    """
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


async def test_failure_before_the_last_octet_counts(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a failure before the last octet counts, and binds the message to no receiver (4.2)."""
    edge = await machines.sender()
    queue = await remote(edge, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    approval = await receiver.chosen()
    await receiver.octets(await receiver.accept(receiver.data_port))
    await receiver.confirm(approval, Result.FAILURE)
    await until(lambda: failed(edge, "failure") == 1)
    assert await receiver.receive() == LARGE
    await until(lambda: edge.is_empty(queue))


async def test_foreign_confirmations_are_ignored(machines: Machines, receiver: HandReceiver) -> None:
    """Check that foreign confirmations are ignored.

    4.2: those with another id, from another address, or malformed are closed and counted; listening continues.
    """
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
    await receiver.connect(approval.endtransmission_port)  # sends nothing
    assert not await edge.is_empty(queue)
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_a_confirmation_before_the_data_is_not_awaited(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that a confirmation before the data is not awaited: no message was sent yet (4.2)."""
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


async def test_message_too_old_to_be_resent_is_held(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a message too old to be resent is held: its receiver may have forgotten its id (4.2).

    Other messages are sent. After a redrive it has another id.
    """
    edge = await machines.sender(t_wait4_s=0.3, t_wait1_s=0.1, dedupe_window_s=1.0, hold_margin_s=0.9)
    queue = await remote(edge)
    await edge.put(queue, b"old")
    first = await receiver.chosen()
    await receiver.data()
    await until(lambda: edge.value("penstock_rqp_cast_held_messages_total") == 1)
    results = [line.getMessage() for line in edge.log.events("rqp_stuck", queue="out")]  # each takes a moment
    assert results[0] == "messages are not delivered: not_confirmed: the receiver 127.0.0.2 does not confirm"
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


async def test_suspended_machine_does_not_resend_forgotten_messages(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a suspended machine does not resend forgotten messages.

    4.2: all time counts, also while the machine and the loop's clock were suspended.
    """
    slept_s = 0.0
    heard, gettime = Clock.heard, time.clock_gettime

    def suspended_heard(clock: Clock, reported: int, asked_s: float) -> None:
        heard(clock, reported + round(slept_s * 1000), asked_s)

    def suspended_gettime(clock: int) -> float:
        return gettime(clock) + (slept_s if clock == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(Clock, "heard", suspended_heard)
    monkeypatch.setattr(time, "clock_gettime", suspended_gettime)
    # or the suspension ends an attempt at any point, as it may
    owns = {"outbox": {"lease_s": 7 * 24 * 3600.0}}
    edge = await machines.sender(t_wait4_s=0.3, edge=owns)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    for _ in range(2):
        await receiver.chosen()
        await receiver.data()
        slept_s += 12 * 3600.0
    await until(lambda: edge.value("penstock_rqp_cast_held_messages_total") == 1)
    assert [letter.reason for letter in await edge.dead(queue)] == ["held"]


async def test_unread_confirmation_counts_at_the_timeout(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a confirmation unread at T_WAIT4 counts (4.2)."""
    edge = await machines.sender(t_wait4_s=1.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    stalled = asyncio.Event()

    def stall() -> None:
        """Block the loop while it reads: its clock advances before anything else is read."""
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


async def test_silent_connections_do_not_block_the_confirmation(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that silent connections do not block the confirmation, however many there are (4.2)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    silent = [await receiver.connect(approval.endtransmission_port) for _ in range(12)]
    assert await receiver.is_closed(silent[0])
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
