"""What a sending agent of RQP/cast does when receivers die, lie or say nothing, in each state (rqp_cast.md 4)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from protos.rqp_cast import Quality, Result, Sender, SenderAction
from services.kit.net.sockets import reset_on_close
from services.rqp.cast.ports.ports import Whom
from services.rqp.cast.sending import stock
from services.store import Delivery, Queue, Source, StoreError
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.claims import Claims
from services.store.pipeline.messages import Messages
from tests.live import PATIENCE_S, until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, failed, got_through, port_range, remote
from tests.rqp.cast.steps import LARGE, QUALITIES, Closed
from tests.rqp.conftest import NewServer
from tests.rqp.live import LiveEdge


async def note(edge: LiveEdge, queue: Queue) -> list[str]:
    """What is kept with the one message that is there, leased or not."""
    (kept,) = await edge.tools.get_domain(queue.domain).link.call("HVALS", queue.keys[4])
    return str(kept.decode().partition(";")[2].partition(" ")[0]).split(":")


async def state(edge: LiveEdge, queue: Queue) -> list[str]:
    """Of it: failures, receiver, first whole send, not before."""
    return (await note(edge, queue))[3:]


async def test_a_receiver_that_dies_after_its_offer(machines: Machines, receiver: HandReceiver) -> None:
    """4.1: a failure before the first octet of DATA_MSG counts as no answer; nobody is bound."""
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
async def test_a_receiver_that_dies_after_the_approval(
    machines: Machines, receiver: HandReceiver, quality: Quality
) -> None:
    """4.1, 4.5: `not_begun`: back, or to the end; another receiver may have it."""
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


async def test_a_data_port_that_listens_a_moment_later(machines: Machines, receiver: HandReceiver) -> None:
    """3.2: it listens from the approval on; that S comes first is no failure."""
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
async def test_a_receiver_that_dies_in_the_middle(
    machines: Machines, receiver: HandReceiver, quality: Quality
) -> None:
    """4.1, 4.5: `cut_short`: an uncertain message counts as sent, a certain one moves to the end and is not bound."""
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
    """A receiver that closes with octets unread: the connection is reset."""
    sock = await receiver.accept(receiver.data_port)
    assert await receiver.octets(sock)
    reset_on_close(sock)
    sock.close()


async def test_a_receiver_that_breaks_off_and_says_failure(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.2: it will not have the message; that the connection broke is found out first, and FAILURE counts."""
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


async def test_t_wait4_is_over_in_the_middle(machines: Machines, receiver: HandReceiver) -> None:
    """4.1, 4.2: to the end, and bound: nobody knows whether the last octet had left."""
    edge = await machines.sender(t_wait4_s=0.5)
    queue = await remote(edge, maxMessageBytes=len(LARGE))
    await edge.put(queue, LARGE)
    await receiver.chosen()
    await receiver.accept(receiver.data_port)  # and nobody reads
    await until(lambda: failed(edge, "cut_short") == 1)
    assert (await state(edge, queue))[1] == THERE


async def test_no_answer_is_no_failure(machines: Machines, receiver: HandReceiver) -> None:
    """4.2: only FAILUREs count; a message without an answer is tried for ever."""
    edge = await machines.sender(max_attempts=1, t_wait1_s=0.05)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: failed(edge, "no_answer") >= 5)
    receiver.asked()
    assert await receiver.receive() == b"hello"
    await until(lambda: edge.is_empty(queue))


async def test_nothing_is_wrong_with_a_queue_in_which_nothing_waits(machines: Machines) -> None:
    """docs/rqp.md: what did not get through has expired."""
    edge = await machines.sender(t_wait1_s=0.1)
    queue = await remote(edge, spec={"messageTTL": "1s"})
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no_answer"))
    await until(lambda: edge.has_no_condition(queue))
    await until(lambda: edge.is_empty(queue))
    assert edge.value("penstock_rqp_stuck_queues", protocol="rqp-cast") == 0


async def test_ports_rest_after_a_time_out(machines: Machines, receiver: HandReceiver) -> None:
    """1.2: a late confirmation must not be taken for another attempt's."""
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


async def test_a_receiver_that_does_not_confirm_keeps_no_ports_from_others(
    machines: Machines, receiver: HandReceiver
) -> None:
    """1.2: they rest for this one; whose messages wait for that, says so."""
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
    """1.2: its receiver was told of it, and may say something late; for others it is free."""
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
    assert not sending.ports.has(1, Whom(THERE, 0))


async def test_what_is_out_may_be_confirmed_while_the_edge_drains(
    machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: and nothing more is asked."""
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


async def test_a_queue_that_is_paused_is_not_sent(machines: Machines, receiver: HandReceiver) -> None:
    """4: what it holds waits in its places until it is resumed."""
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


async def test_another_replica_carries_on(machines: Machines, receiver: HandReceiver) -> None:
    """2.3, 4.2: with the same id and address, to the same receiver; ownership moves with the process that ends."""
    edge = await machines.sender(t_wait4_s=0.3)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    first = await receiver.chosen()
    await receiver.data()
    await until(lambda: failed(edge, "not_confirmed") == 1)
    await agent(edge).close()
    replica = await machines.sender("127.0.0.4", asks=(THERE, "127.0.0.3"))
    receiver.asked()
    receiver.other = "127.0.0.4"
    second = await receiver.chosen()
    assert (second.id, second.address) == (first.id, HERE)
    assert (await receiver.data())[:4] == b"\x7f\0\0\1"
    await receiver.confirm(second, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
    assert got_through(replica) == 1


async def test_a_note_of_another_version_is_written_anew(machines: Machines, receiver: HandReceiver) -> None:
    """2.3: a message has an id of ours before it is sent, whatever stood beside it."""
    edge = await machines.sender(asks=(), t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: failed(edge, "no_answer") >= 1)
    await agent(edge).close()
    client = AsyncClient(edge.tools.open_domain(queue.domain).pipe)
    (delivery,) = await until(lambda: client.take(queue, 1))
    await client.note(delivery, "somebody-else")
    await client.release([delivery])
    await machines.sender("127.0.0.4", asks=(), t_wait1_s=0.1)

    async def has_id() -> bool:
        return (await note(edge, queue))[0] == "cast1"

    await until(has_id)


async def test_so_many_messages_wait_for_their_time(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/rqp.md: of each queue; beyond that nothing more is leased."""
    monkeypatch.setattr(stock, "MAX_WAITING", 2)
    monkeypatch.setattr(stock, "WANTED", 1)
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


async def test_a_queue_that_is_lost_is_let_go_at_once(
    new_server: NewServer, machines: Machines, receiver: HandReceiver
) -> None:
    """docs/rqp.md: before anybody else can own it, also while a message is out."""
    server = await new_server()
    outbox = {"lease_s": 3.0, "renew_s": 0.3}
    edge = await machines.sender(server=server, edge={"outbox": outbox}, t_wait4_s=600.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    server.stop()

    async def is_shut() -> bool:
        try:
            (await receiver.connect(approval.endtransmission_port)).close()
        except ConnectionRefusedError:
            return True
        return False

    await until(is_shut)
    server.cont()


async def test_what_goes_back_is_back_before_the_queue_is_anothers(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/rqp.md, "Order": whoever has it next finds it in its order."""
    order: list[str] = []
    release, disown = Messages.release, Claims.disown

    def slow(pipe: Messages, source: Source, given: list[Delivery], *, done: Any = None, **how: Any) -> None:
        def back(error: StoreError | None) -> None:
            order.append("back")
            done(error)

        # as from a store that takes its time
        later = asyncio.get_running_loop().call_later
        release(pipe, source, given, done=lambda error: later(0.3, back, error), **how)

    async def disowned(*named: Any) -> bool:
        order.append("disowned")
        return await disown(*named)

    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"one", b"two")
    await receiver.question()
    monkeypatch.setattr(Messages, "release", slow)
    monkeypatch.setattr(Claims, "disown", disowned)
    await edge.service.stop_taking()
    assert (order[0], order[-1]) == ("back", "disowned")
