"""The receiving agent of RQP/cast with a test sender (rqp_cast.md 3, 5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protos.rqp_cast import (
    AcceptReceiverMsg,
    Quality,
    Result,
    accept_sender_reader,
    encode_accept_receiver,
)
from services.store.model.errors import OutcomeUnknown, StoreUnavailable
from services.store.pipeline.claims import Asked, Claims
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, ended, is_reserved, keyed, unanswered
from tests.rqp.cast.steps import chosen
from tests.rqp.conftest import NewServer


async def test_a_certain_message_is_inserted_and_confirmed(machines: Machines, hands: HandSender) -> None:
    """Check that a certain message is stored with its sender's address, then confirmed by SUCCESS (3, 5.5)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    assert (offer.address, offer.key) == (THERE, 7)
    await hands.approve(offer, id=99)
    await hands.data(offer, b"hello")
    end = await hands.end()
    assert (end.address, end.id, end.result) == (THERE, 99, Result.SUCCESS)
    assert await edge.bodies(queue) == [b"hello"]
    await until(lambda: ended(edge, "stored") == 1)


async def test_an_uncertain_message_is_inserted_and_never_confirmed(
    machines: Machines, hands: HandSender
) -> None:
    """Check that an uncertain message is inserted and never confirmed, for any endtransmission_port (5.6, 2.3)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    port = hands.endtransmission.getsockname()[1]
    approval = AcceptReceiverMsg(HERE, port, 5, Quality.LOW_QUALITY)
    await hands.say(offer.accept_port, encode_accept_receiver(approval))
    await hands.data(offer, b"perhaps")
    await until(lambda: ended(edge, "stored") == 1)
    assert await edge.bodies(queue) == [b"perhaps"]
    with pytest.raises(BlockingIOError):
        hands.endtransmission.accept()


async def test_identical_uncertain_messages_are_both_stored(machines: Machines, hands: HandSender) -> None:
    """Check that identical uncertain messages are both stored (2.3, 5.4)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    for number in (1, 2):
        await hands.send_uncertain(b"same")
        await until(lambda number=number: ended(edge, "stored") == number)
    assert await edge.bodies(queue) == [b"same", b"same"]


async def test_the_queue_is_free_before_the_confirmation_is_sent(
    machines: Machines, hands: HandSender
) -> None:
    """Check that the queue is free before the confirmation is sent, for a sender that continues at once (3.5)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    for number in range(1, 31):
        assert await hands.send(b"%d" % number, id=number) is Result.SUCCESS
    assert len(await edge.bodies(queue)) == 30


async def test_a_reserved_queue_does_not_answer(machines: Machines, hands: HandSender) -> None:
    """Check that a reserved queue does not answer: the reservation is in the store until the session ends (3.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    assert await is_reserved(edge, queue)
    hands.ask()
    await until(lambda: edge.value("penstock_rqp_cast_unanswered_total", reason="reserved") == 1)
    await hands.approve(offer)
    await hands.data(offer, b"")
    assert (await hands.end()).result is Result.SUCCESS
    assert not await is_reserved(edge, queue)


async def test_queue_reserved_by_another_replica_is_not_answered(
    machines: Machines, hands: HandSender
) -> None:
    """Check that a queue reserved by another replica is not answered (3.2)."""
    edge = await machines.receiver()
    await machines.receiver("127.0.0.3")
    queue = await keyed(edge)
    with HandSender(machines.net, "127.0.0.4", "127.0.0.3") as others:
        await others.asked()
        hands.ask()
        await until(lambda: edge.value("penstock_rqp_cast_unanswered_total", reason="reserved") == 1)
    assert await is_reserved(edge, queue)


async def test_session_renews_its_reservation(machines: Machines, hands: HandSender) -> None:
    """Check that a session renews its reservation beyond its first lease (3.2)."""
    edge = await machines.receiver(reservation_s=0.3, t_wait2_s=30.0)
    queue = await keyed(edge)
    offer = await hands.asked()
    for _ in range(12):
        await asyncio.sleep(0.1)
        assert await is_reserved(edge, queue)
    await hands.approve(offer)
    await hands.data(offer, b"late")
    assert (await hands.end()).result is Result.SUCCESS


async def test_holder_of_a_reservation_is_shown(machines: Machines, hands: HandSender) -> None:
    """Check that the holder of a reservation is shown: edge, session number, sender's address (3.2, rqp-cast.md)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    await hands.asked()
    protocol, name, number, address = (await edge.stats(queue))["reserved_by"].split(" ")
    assert (protocol, name.startswith("rqp-"), number, address) == ("rqp-cast", True, "1", hands.host)


async def test_insertion_checks_the_reservation(machines: Machines, hands: HandSender) -> None:
    """Check that insertion checks the reservation: a session that lost it answers FAILURE (3.2, 5.5)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.approve(offer)
    domain = edge.tools.get_domain(queue.domain)
    holder = (await edge.stats(queue))["reserved_by"]
    fence = await domain.claims.reserve(queue, holder, 30_000)
    await domain.claims.release_reservation(queue, holder, fence)
    await domain.claims.reserve(queue, "other holder", 30_000)
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.FAILURE
    assert await edge.bodies(queue) == []
    await domain.claims.release_reservation(queue, "other holder", fence + 1)


async def test_failed_confirmation_changes_nothing(machines: Machines, hands: HandSender) -> None:
    """Check that a failed confirmation changes nothing (3.5)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.approve(offer)
    hands.endtransmission.close()
    await hands.data(offer, b"hello")
    await until(lambda: edge.value("penstock_rqp_cast_confirmations_lost_total") == 1)
    assert await edge.bodies(queue) == [b"hello"]
    assert not await is_reserved(edge, queue)


async def test_octets_after_the_message_are_counted(machines: Machines, hands: HandSender) -> None:
    """Check that octets after the message are counted (5.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.approve(offer)
    await hands.say(offer.data_port, b"\x7f\0\0\1" + b"\0\0\0\7" + b"\0\0\0\2" + b"hi" + b"more")
    assert (await hands.end()).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hi"]
    await until(lambda: edge.value("penstock_rqp_cast_excess_bytes_total") == 4)


async def test_messages_may_come_octet_by_octet(machines: Machines, hands: HandSender) -> None:
    """Check that messages may come octet by octet: TCP segments do not matter (2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    loop = asyncio.get_running_loop()
    for port, data in (
        (offer.accept_port, encode_accept_receiver(hands.approval(7, Quality.HIGH_QUALITY))),
        (offer.data_port, b"\x7f\0\0\1" + b"\0\0\0\7" + b"\0\0\0\5" + b"hello"),
    ):
        with await hands.connect(port) as sock:
            for octet in data:
                await loop.sock_sendall(sock, bytes((octet,)))
                await asyncio.sleep(0.001)
    assert (await hands.end()).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]


async def test_the_largest_message_arrives_whole(machines: Machines, hands: HandSender) -> None:
    """Check that the largest allowed message arrives whole (5.2)."""
    edge = await machines.receiver(max_message_bytes=3 << 20)
    queue = await keyed(edge)
    body = bytes(range(256)) * (3 << 12)
    assert await hands.send(body) is Result.SUCCESS
    assert await edge.bodies(queue) == [body]


async def test_addresses_are_omitted_if_configured(machines: Machines, hands: HandSender) -> None:
    """Check that addresses are omitted if configured: four octets less over TCP, both ways (2.2)."""
    group = {"quiet": {"addresses": [HERE], "omit_address": True}}
    edge = await machines.receiver(peers=group)
    queue = await keyed(edge)
    hands.ask()
    offer = await hands.read(hands.findreceiver, accept_sender_reader(omit_address=True))
    approval = hands.approval(3, Quality.HIGH_QUALITY)
    await hands.say(offer.accept_port, encode_accept_receiver(approval)[4:])
    await hands.say(offer.data_port, b"\0\0\0\7" + b"\0\0\0\2" + b"hi")
    assert (await hands.end(omit_address=True)).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hi"]


async def test_paused_queue_is_not_answered(machines: Machines, hands: HandSender) -> None:
    """Check that a paused queue is not answered, like a missing one (3.2)."""
    edge = await machines.receiver()
    await keyed(edge, paused=True)
    hands.ask()
    await until(lambda: edge.value("penstock_rqp_cast_unanswered_total", reason="unavailable") == 1)


async def test_a_full_queue_is_silent(machines: Machines, hands: HandSender) -> None:
    """Check that a full queue is silent, so that S may find another receiver, or keeps its message (3.2)."""
    edge = await machines.receiver()
    await keyed(edge, maxLength=1)
    assert await hands.send(b"one", id=1) is Result.SUCCESS
    hands.ask()
    await until(lambda: edge.value("penstock_rqp_cast_unanswered_total", reason="unavailable") == 1)


async def test_queue_that_refused_is_checked_before_the_next_answer(
    new_server: NewServer, machines: Machines, hands: HandSender
) -> None:
    """Check that a queue that refused is checked before the next answer (3.2).

    A queue without bounds is assumed to have room until it refuses; then its questions are not answered, so that S may
    find another receiver.
    """
    server = await new_server()
    edge = await machines.receiver(server=server)
    await keyed(edge)
    offer = await chosen(hands)
    with server.configured(maxmemory="1mb"):
        await hands.data(offer, b"one")
        assert (await hands.end()).result is Result.FAILURE
        assert ended(edge, "refused") == 1
        hands.ask()
        await until(lambda: unanswered(edge, "unavailable") == 1)
    assert await hands.send(b"two", id=2) is Result.SUCCESS


async def test_failed_renewal_is_retried(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a failed renewal is retried for as long as the session lives (3.2)."""
    asked: list[float] = []
    reserve = Claims.reserve

    async def fail_once(self: Claims, *named: Any) -> int:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 2:
            raise StoreUnavailable
        return await reserve(self, *named)

    monkeypatch.setattr(Claims, "reserve", fail_once)
    edge = await machines.receiver(reservation_s=2.0, t_wait2_s=600.0)
    queue = await keyed(edge)
    offer = await hands.asked()
    await until(lambda: len(asked) >= 5)  # by now the first lease has expired
    assert asked[-1] - asked[0] > 2.0
    assert await is_reserved(edge, queue)
    await hands.approve(offer)
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.SUCCESS


async def test_slow_renewal_does_not_outlive_the_session(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a slow renewal does not outlive the session: each end frees the queue (3.2)."""
    begun, may_go, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    reserve = Claims.reserve

    async def slowly(*named: Any) -> int:
        begun.set()
        await may_go.wait()
        try:
            return await reserve(*named)
        finally:
            gone.set()

    async def first_at_once(*named: Any) -> int:
        if isinstance(named[-1], Asked):
            return await reserve(*named)
        return await asyncio.shield(asyncio.ensure_future(slowly(*named)))

    monkeypatch.setattr(Claims, "reserve", first_at_once)
    edge = await machines.receiver(reservation_s=6.0)
    queue = await keyed(edge)
    offer = await hands.asked()
    await until(begun.is_set)
    await hands.say(offer.accept_port, b"")
    await asyncio.sleep(0.3)  # for an end that does not wait
    may_go.set()
    await gone.wait()
    await until(lambda: ended(edge, "declined") == 1)
    assert not await is_reserved(edge, queue)


async def test_reservation_with_a_lost_answer_is_released(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a reservation with a lost answer is released: the store may have granted it (3.2)."""
    reserve = Claims.reserve

    async def lose_the_answer(*named: Any) -> int:
        await reserve(*named)
        monkeypatch.setattr(Claims, "reserve", reserve)
        raise OutcomeUnknown

    monkeypatch.setattr(Claims, "reserve", lose_the_answer)
    edge = await machines.receiver(reservation_s=600.0)
    await keyed(edge)
    hands.ask()
    await until(lambda: unanswered(edge, "unavailable") == 1)
    assert await hands.send(b"hello") is Result.SUCCESS


async def test_sessions_end_before_the_edge_does(machines: Machines, hands: HandSender) -> None:
    """Check that sessions end before the edge does: a drain answers nothing new and finishes sessions."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    draining = asyncio.create_task(edge.service.stop_taking())
    await asyncio.sleep(0)
    assert len(agent(edge).questions.sessions.active) == 1
    await hands.approve(offer)
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.SUCCESS
    await draining
    assert await edge.bodies(queue) == [b"hello"]
    assert agent(edge).questions.sessions.active == []
