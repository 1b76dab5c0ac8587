"""A sending agent of RQP/cast whose receivers die, misbehave or stay silent, in each state (rqp_cast.md 4)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from protos.rqp_cast import Quality, Result, Sender, SenderAction
from services.kit.net.sockets import reset_on_close
from services.rqp.cast.ports.ports import PeerKey
from services.rqp.cast.sending import prefetch_buffer
from services.store import Queue
from services.store.pipeline.async_client import AsyncClient
from tests.live import PATIENCE_S, until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import THERE, agent, failed, port_range, remote
from tests.rqp.cast.steps import LARGE, QUALITIES, Closed
from tests.rqp.live import LiveEdge


async def note(edge: LiveEdge, queue: Queue) -> list[str]:
    """Return the note stored with the only message, leased or not."""
    (kept,) = await edge.tools.get_domain(queue.domain).link.call("HVALS", queue.keys[4])
    return str(kept.decode().partition(";")[2].partition(" ")[0]).split(":")


async def state(edge: LiveEdge, queue: Queue) -> list[str]:
    """Return the message's failures, receiver, first whole send, and earliest retry."""
    return (await note(edge, queue))[3:]


async def test_receiver_dies_after_its_offer(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a receiver's death after its offer counts as no answer (4.1).

    It failed before the first octet of DATA_MSG, so the message is not bound.
    """
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.question()
    receiver.accept_port.close()
    ports = receiver.listen()
    port = ports.getsockname()[1]
    ports.close()
    receiver.accept_port = Closed(port)
    await receiver.offer()
    await until(lambda: failed(edge, "not_begun") == 1)
    receiver.accept_port = receiver.listen()
    assert await receiver.receive() == b"hello"
    await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize("quality", QUALITIES)
async def test_receiver_dies_after_the_approval(
    machines: Machines, receiver: HandReceiver, quality: Quality
) -> None:
    """Check that a death after the approval is `not_begun`: the message returns or moves to the end (4.1, 4.5).

    Another receiver may have it.
    """
    edge = await machines.sender(connect_timeout_s=0.3, asks=(THERE, "127.0.0.3"))
    queue = await remote(edge, reliable=quality is Quality.HIGH_QUALITY)
    await edge.put(queue, b"hello")
    port = receiver.data_port.getsockname()[1]
    receiver.data_port.close()
    receiver.data_port = Closed(port)
    await receiver.chosen()
    await until(lambda: failed(edge, "not_begun") == 1)
    with HandReceiver(machines.net, "127.0.0.3") as other:
        approval = await other.chosen(address="127.0.0.3")
        assert (await other.data())[12:] == b"hello"
        if quality is Quality.HIGH_QUALITY:
            await other.confirm(approval, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))


async def test_data_port_may_listen_a_moment_later(machines: Machines, receiver: HandReceiver) -> None:
    """Check that data_port may listen a moment after the approval: an earlier connect is no failure (3.2)."""
    edge = await machines.sender(t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    port = receiver.data_port.getsockname()[1]
    receiver.data_port.close()
    await receiver.question()
    receiver.data_port = Closed(port)
    await receiver.offer()
    approval = await receiver.approval()
    await asyncio.sleep(0.05)
    receiver.data_port = receiver.listen(port)
    assert (await receiver.data())[12:] == b"hello"
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize("quality", QUALITIES)
async def test_receiver_dies_within_a_message(
    machines: Machines, receiver: HandReceiver, quality: Quality
) -> None:
    """Check that a receiver's death within a message is `cut_short` (4.1, 4.5).

    An uncertain message counts as sent; a certain one moves to the end and is not bound.
    """
    edge = await machines.sender(connect_timeout_s=0.3)
    certain = quality is Quality.HIGH_QUALITY
    queue = await remote(edge, reliable=certain, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    await receiver.chosen()
    await begins_and_breaks(receiver)
    await until(lambda: failed(edge, "cut_short") == 1)
    if certain:
        assert (await state(edge, queue))[:3] == ["0", "-", "-"]
        assert await receiver.receive() == LARGE
    await until(lambda: edge.is_empty(queue))


async def begins_and_breaks(receiver: HandReceiver) -> None:
    """Start to receive, then close with unread octets, which resets the connection."""
    sock = await receiver.accept(receiver.data_port)
    assert await receiver.octets(sock)
    reset_on_close(sock)
    sock.close()


async def test_receiver_resets_and_sends_failure(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that FAILURE counts although the sender detects the receiver's reset first (4.2)."""
    broke = asyncio.Event()
    failed_then = Sender.failed

    def failing(machine: Sender, now: float) -> list[SenderAction]:
        broke.set()
        return failed_then(machine, now)

    monkeypatch.setattr(Sender, "failed", failing)
    edge = await machines.sender(connect_timeout_s=10.0)
    queue = await remote(edge, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    approval = await receiver.chosen()
    await begins_and_breaks(receiver)
    await broke.wait()
    await receiver.confirm(approval, Result.FAILURE)
    await until(lambda: failed(edge, "failure") == 1)
    assert (await state(edge, queue))[:3] == ["1", "-", "-"]
    assert failed(edge, "cut_short") == 0


async def test_t_wait4_within_a_message(machines: Machines, receiver: HandReceiver) -> None:
    """Check that T_WAIT4 within a message moves it to the end and binds it (4.1, 4.2).

    It is unknown whether the last octet was sent.
    """
    edge = await machines.sender(t_wait4_s=0.5)
    queue = await remote(edge, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    await receiver.chosen()
    await receiver.accept(receiver.data_port)  # and reads nothing
    await until(lambda: failed(edge, "cut_short") == 1)
    assert (await state(edge, queue))[1] == THERE


async def test_missing_answers_do_not_count_as_failures(machines: Machines, receiver: HandReceiver) -> None:
    """Check that missing answers do not count as failures: only FAILUREs limit retries (4.2)."""
    edge = await machines.sender(max_attempts=1, t_wait1_s=0.05)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: failed(edge, "no_answer") >= 5)
    receiver.asked()
    assert await receiver.receive() == b"hello"
    await until(lambda: edge.is_empty(queue))


async def test_condition_of_an_empty_queue_is_cleared(machines: Machines) -> None:
    """Check that the condition of an empty queue is cleared: the failing message has expired (docs/rqp-cast.md)."""
    edge = await machines.sender(t_wait1_s=0.1)
    queue = await remote(edge, spec={"messageTTL": "1s"})
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no_answer"))
    await until(lambda: edge.has_no_condition(queue))
    await until(lambda: edge.is_empty(queue))
    assert edge.value("penstock_rqp_stuck_queues", protocol="rqp-cast") == 0


async def test_ports_rest_after_a_timeout(machines: Machines, receiver: HandReceiver) -> None:
    """Check that ports rest after a timeout: a late confirmation must not count for another attempt (1.2)."""
    edge = await machines.sender(t_wait4_s=0.5, port_rest_s=600.0, sender_ports=port_range(2))
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    first = await receiver.chosen()
    await receiver.data()
    await until(lambda: failed(edge, "not_confirmed") == 1)
    with pytest.raises(ConnectionRefusedError):
        await receiver.connect(first.endtransmission_port)
    for _ in range(3):
        again = await receiver.chosen()
        assert again.endtransmission_port != first.endtransmission_port
        await receiver.data()
        await receiver.confirm(again, Result.FAILURE)


async def test_resting_ports_serve_other_receivers(machines: Machines, receiver: HandReceiver) -> None:
    """Check that resting ports serve other receivers (1.2).

    The condition of queues that wait for the ports says so.
    """
    edge = await machines.sender(
        asks=(THERE, "127.0.0.3"), t_wait4_s=0.5, port_rest_s=600.0, sender_ports=port_range(1)
    )
    bad, good = await remote(edge, "bad", 8), await remote(edge, "good", 7)
    await edge.put(bad, b"never confirmed")
    await receiver.chosen(8)
    await receiver.data()
    await until(lambda: edge.has_condition(bad, "no_port: waits for an endtransmission_port, of "))
    assert failed(edge, "not_confirmed") == 1
    with HandReceiver(machines.net, "127.0.0.3") as other:
        await edge.put(good, b"one", b"two")
        await receiver.question()
        await receiver.offer(address=THERE)
        assert await receiver.is_declined()
        await until(lambda: failed(edge, "not_begun") == 1)
        other.asked()
        for body in (b"two", b"one"):
            approval = await other.chosen(address="127.0.0.3")
            assert (await other.data())[12:] == body
            await other.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(good))
    await until(lambda: edge.has_no_condition(good))


async def test_a_port_of_a_cancelled_attempt_rests(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a port of a cancelled attempt rests for its receiver, which may send late, only (1.2)."""
    edge = await machines.sender(port_rest_s=600.0, sender_ports=port_range(1), connect_timeout_s=20.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    port = receiver.data_port.getsockname()[1]
    receiver.data_port.close()
    receiver.data_port = Closed(port)
    await receiver.chosen()
    await edge.service.stop_taking()
    sending = agent(edge).sending
    assert sending is not None
    assert sending.ports.has(1)
    assert not sending.ports.has(1, PeerKey(THERE, 0))


async def test_message_in_flight_may_be_confirmed_during_a_drain(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that a message in flight may be confirmed during a drain, and no more are sent (4.2)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"out", b"not yet")
    approval = await receiver.chosen()
    await receiver.data()
    draining = asyncio.create_task(edge.service.stop_taking())
    await asyncio.sleep(0.05)
    assert not draining.done()
    await receiver.confirm(approval, Result.SUCCESS)
    await draining
    assert await edge.bodies(queue) == [b"not yet"]
    assert receiver.asked() == 0


async def test_paused_queue_is_not_sent(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a paused queue is not sent: its messages keep their places until it is resumed (4)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"one")
    assert await receiver.receive() == b"one"
    paused = queue.spec.model_copy(update={"paused": True})
    await edge.tools.catalogue.declare(queue.name, paused, "test", replace=True)
    await until(lambda: edge.value("penstock_rqp_owned_queues", protocol="rqp-cast") == 0)
    await edge.tools.catalogue.declare(queue.name, queue.spec, "test", replace=True)
    await edge.put(queue, b"two")
    assert await receiver.receive() == b"two"


async def test_note_of_another_version_is_replaced(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a note of another version is replaced: the message gets a new id before it is sent (2.3)."""
    edge = await machines.sender(asks=(), t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: failed(edge, "no_answer") >= 1)
    await agent(edge).close()
    client = AsyncClient(edge.tools.open_domain(queue.domain).pipe)
    (delivery,) = await until(lambda: client.take(queue, 1))
    await client.note(delivery, "cast0")
    await client.release([delivery])
    await machines.sender("127.0.0.4", asks=(), t_wait1_s=0.1)

    async def has_id() -> bool:
        return (await note(edge, queue))[0] == "cast1"

    await until(has_id)


async def test_messages_waiting_for_a_retry_are_bounded(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each queue's messages waiting for a retry are bounded; further ones are not leased (rqp-cast.md)."""
    monkeypatch.setattr(prefetch_buffer, "MAX_WAITING", 2)
    monkeypatch.setattr(prefetch_buffer, "WANTED", 1)
    edge = await machines.sender(first_backoff_s=600.0, max_backoff_s=600.0)
    queue = await remote(edge)
    await edge.put(queue, b"1", b"2", b"3", b"4")
    for number in range(1, 5):
        assert await receiver.receive(Result.FAILURE) == b"%d" % number

    async def leased(count: int) -> bool:
        return bool((await edge.stats(queue))["in_flight"] == count)

    await until(partial(leased, 2))
    await asyncio.sleep(0.3)
    assert await leased(2)
