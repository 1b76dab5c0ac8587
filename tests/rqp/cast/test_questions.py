"""Questions left unanswered by a receiving agent of RQP/cast, and the cost of hostile ones.

(rqp_cast.md 1.2, 2.2, 3.2)
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from protos.rqp_cast import Quality, Result, encode_accept_receiver
from services.rqp.cast.ports import session_slots
from services.rqp.cast.ports.ports import PeerKey
from services.rqp.cast.receiving import questions
from services.store.catalogue import numbers
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, ended, keyed, port_range, remote, unanswered, unheard
from tests.rqp.conftest import NewServer


async def test_unknown_key_is_not_answered(machines: Machines, hands: HandSender) -> None:
    """Check that an unknown key is not answered but counted, and a queue that gets the key is found at once (3.2)."""
    edge = await machines.receiver()
    hands.ask()
    await until(lambda: unanswered(edge, "unknown_key") == 1)
    await keyed(edge)
    assert await hands.send(b"hello") is Result.SUCCESS


async def test_key_may_move_to_another_queue(machines: Machines, hands: HandSender) -> None:
    """Check that a key may move to another queue, which then receives (3.2)."""
    edge = await machines.receiver()
    first = await keyed(edge, "first")
    assert await hands.send(b"1", id=1) is Result.SUCCESS
    await edge.tools.catalogue.delete(first)
    second = await keyed(edge, "second")
    assert await hands.send(b"2", id=2) is Result.SUCCESS
    assert await edge.bodies(second) == [b"2"]


async def test_transmission_queue_is_not_answered(machines: Machines, hands: HandSender) -> None:
    """Check that a transmission queue is not answered: its key belongs to another system (3.2)."""
    edge = await machines.receiver()
    await remote(edge)
    hands.ask()
    await until(lambda: unanswered(edge, "unknown_key") == 1)


@pytest.mark.parametrize("datagram", [b"", b"\0", b"\x7f\0\0\1\0\0\0", b"\x7f\0\0\1\0\0\0\7\0", b"x" * 1400])
async def test_malformed_question_is_counted(machines: Machines, hands: HandSender, datagram: bytes) -> None:
    """Check that a malformed question is counted as `bad_size` (3.2)."""
    edge = await machines.receiver()
    await keyed(edge)
    hands.throw(datagram)
    await until(lambda: unanswered(edge, "bad_size") == 1)


async def test_question_with_a_forged_address_is_dropped(
    machines: Machines, hands: HandSender, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that a question with a forged address is dropped and connects to no third machine (2.2)."""
    edge = await machines.receiver()
    await keyed(edge)
    with HandSender(machines.net, "127.0.0.9") as third:
        hands.ask(address="127.0.0.9")
        hands.ask(address="127.0.0.8")
        await until(lambda: unanswered(edge, "foreign_address") == 2)
        results = [
            record for record in caplog.records if getattr(record, "action", "") == "cast_foreign_address"
        ]
        assert len(results) == 1, "once per address"
        assert "trust_address" in results[0].getMessage()
        with pytest.raises(BlockingIOError):
            third.findreceiver.accept()


async def test_trusted_address_behind_nat_is_answered(machines: Machines, hands: HandSender) -> None:
    """Check that a trusted address behind NAT is answered at the question's source (2.2, 2.3).

    The address in the field identifies the owner of the id.
    """
    group = {"far": {"addresses": [HERE, "127.0.0.9"], "trust_address": True}}
    edge = await machines.receiver(peers=group)
    queue = await keyed(edge)
    hands.ask(address="10.1.2.3")
    offer = await hands.answer()
    await hands.approve(offer, id=5)
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]
    with HandSender(
        machines.net, "127.0.0.9"
    ) as replica:  # continues with the id and address of the other one
        offer = await replica.asked()
        approval = replace(replica.approval(5, Quality.HIGH_QUALITY), address=HERE)
        await replica.say(offer.accept_port, encode_accept_receiver(approval))
        await replica.data(offer, b"hello")
        assert (await replica.end()).result is Result.FAILURE
    assert await edge.bodies(queue) == [b"hello"]


async def test_question_without_free_ports_is_not_answered(machines: Machines, hands: HandSender) -> None:
    """Check that a question without free ports is not answered but counted (1.2).

    Ports are in use while open or resting.
    """
    edge = await machines.receiver(
        receiver_ports=port_range(2), port_rest_s=0.3, t_wait2_s=0.3, t_wait1_s=0.1
    )
    await keyed(edge)
    await keyed(edge, "other", key=8)
    await hands.asked()
    hands.ask(8)
    await until(lambda: unanswered(edge, "ports_used_up") == 1)
    await until(lambda: ended(edge, "timed_out_wait_for_approval") == 1)
    hands.ask()  # now they rest
    await until(lambda: unanswered(edge, "ports_used_up") == 2)
    ports = agent(edge).questions.sessions.ports
    await until(lambda: ports.has(2, PeerKey(HERE, 7)))
    assert (await hands.asked()).key == 7


async def test_resting_ports_do_not_block_other_peers_and_keys(machines: Machines, hands: HandSender) -> None:
    """Check that resting ports do not block other peers and keys (1.2).

    A receiver whose answer is never the first rests its ports, and still answers others.
    """
    edge = await machines.receiver(receiver_ports=port_range(2), port_rest_s=600.0, t_wait2_s=0.2)
    await keyed(edge)
    await keyed(edge, "other", key=8)
    await hands.asked()
    await until(lambda: ended(edge, "timed_out_wait_for_approval") == 1)
    with HandSender(machines.net, "127.0.0.5") as other:
        assert await other.send(b"hello") is Result.SUCCESS
    assert (await hands.asked(8)).key == 8
    hands.ask()
    await until(lambda: unanswered(edge, "ports_used_up") == 1)


async def test_malformed_approval_does_not_rest_ports(machines: Machines, hands: HandSender) -> None:
    """Check that a malformed approval does not rest ports, so that they cannot be exhausted quickly (1.2)."""
    edge = await machines.receiver(receiver_ports=port_range(2), port_rest_s=600.0)
    await keyed(edge)
    for number in range(1, 6):
        offer = await hands.asked()
        await hands.say(offer.accept_port, b"\xff" * 11)
        await until(lambda number=number: ended(edge, "fault") == number)
    assert await hands.send(b"hello") is Result.SUCCESS


async def test_ports_of_other_processes_are_skipped(machines: Machines, hands: HandSender) -> None:
    """Check that ports of other processes are skipped: two replicas of a machine never share one (1.2)."""
    ports = port_range()
    edge = await machines.receiver(receiver_ports=ports)
    queue = await keyed(edge)
    with HandSender(machines.net, THERE, HERE) as others:
        first = int(ports.partition("-")[0])
        others.listen(first)
        for number in range(1, 31):
            offer = await hands.asked()
            assert first not in (offer.accept_port, offer.data_port)
            await hands.approve(offer, number)
            await hands.data(offer, b"")
            assert (await hands.end()).result is Result.SUCCESS
    assert len(await edge.bodies(queue)) == 30


async def test_port_accepts_only_its_peer(machines: Machines, hands: HandSender) -> None:
    """Check that a port accepts only its peer: other connections are closed and counted (1.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    for port in (offer.accept_port, offer.data_port):
        foreign = await hands.connect(port, "127.0.0.66")
        if port == offer.data_port:
            await hands.approve(offer)
        assert await hands.is_closed(foreign)
    assert unheard(edge, "foreign_peer") == 2
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]


async def test_a_port_takes_one_connection(machines: Machines, hands: HandSender) -> None:
    """Check that a port takes one connection (1.2)."""
    edge = await machines.receiver()
    await keyed(edge)
    offer = await hands.asked()
    await hands.approve(offer)
    first = await hands.connect(offer.data_port)
    await asyncio.get_running_loop().sock_sendall(first, b"\x7f")
    await until(lambda: any(session.buffered for session in agent(edge).questions.sessions.active))
    with pytest.raises(ConnectionRefusedError):
        await hands.connect(offer.data_port)
    first.close()
    assert (await hands.end()).result is Result.FAILURE


async def test_one_machine_cannot_have_all_sessions(machines: Machines, hands: HandSender) -> None:
    """Check that one machine cannot have all sessions: max_sessions_per_address (3.2)."""
    edge = await machines.receiver(max_sessions_per_address=2)
    for key in range(4):
        await keyed(edge, f"queue {key}", key=key)
    for key in range(2):
        await hands.asked(key)
    hands.ask(2)
    await until(lambda: unanswered(edge, "too_many_sessions") == 1)
    with HandSender(machines.net, "127.0.0.5") as other:
        assert (await other.asked(2)).key == 2


async def test_question_waits_for_a_slot(machines: Machines, hands: HandSender) -> None:
    """Check that a question waits in order for a slot if the machine has all its sessions (1.2)."""
    edge = await machines.receiver(max_sessions_per_address=1, t_wait1_s=60.0)
    for key in range(3):
        await keyed(edge, f"queue {key}", key=key)
    offer = await hands.asked(0)
    for key in (1, 2):
        hands.ask(key)
        await until(lambda key=key: agent(edge).questions.sessions.slots.waiting == key)
    for key in (1, 2):
        await hands.say(offer.accept_port, b"")
        offer = await hands.answer()
        assert offer.key == key
    assert unanswered(edge, "too_many_sessions") == 0


async def test_a_question_waits_for_ports(machines: Machines, hands: HandSender) -> None:
    """Check that a question waits for ports (1.2)."""
    edge = await machines.receiver(receiver_ports=port_range(2), t_wait1_s=60.0)
    await keyed(edge)
    await keyed(edge, "other", key=8)
    offer = await hands.asked()
    with HandSender(machines.net, "127.0.0.5") as other:
        other.ask(8)
        await until(lambda: agent(edge).questions.sessions.slots.waiting == 1)
        await hands.say(offer.accept_port, b"")
        assert (await other.answer()).key == 8


async def test_questions_waiting_for_a_slot_are_bounded(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that questions waiting for a slot are bounded, per address and in total (1.2)."""
    monkeypatch.setattr(session_slots, "MAX_WAITING_OF_ADDRESS", 2)
    monkeypatch.setattr(session_slots, "MAX_WAITING", 3)
    monkeypatch.setattr(questions, "MAX_JUDGED", 1)
    edge = await machines.receiver(max_sessions_per_address=1, t_wait1_s=60.0)
    found = agent(edge).questions.sessions.slots
    for key in range(8):
        await keyed(edge, f"queue {key}", key=key)
    await hands.asked(0)
    for key in (1, 2):
        hands.ask(key)
        await until(lambda key=key: found.waiting == key)
    hands.ask(3)
    await until(lambda: unanswered(edge, "too_many_sessions") == 1)
    with HandSender(machines.net, "127.0.0.5") as other:
        await other.asked(4)
        other.ask(5)
        await until(lambda: found.waiting == 3)
        other.ask(6)
        await until(lambda: unanswered(edge, "too_many_sessions") == 2)
    with HandSender(machines.net, "127.0.0.6") as third:
        assert (await third.asked(7)).key == 7


async def test_questions_waiting_for_the_store_are_bounded(
    new_server: NewServer, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that questions waiting for the store are bounded; further ones are dropped (3.2)."""
    monkeypatch.setattr(questions, "MAX_JUDGED", 2)
    server = await new_server()
    edge = await machines.receiver(server=server)
    with HandSender(machines.net) as hands, HandSender(machines.net, "127.0.0.5") as other:
        server.stop()
        for hand in (hands, other, hands):
            hand.ask()
        await until(lambda: unanswered(edge, "too_many_questions") == 1)
        server.cont()
    await until(lambda: unanswered(edge, "unknown_key") + unanswered(edge, "unavailable") == 2)


async def test_flood_of_unknown_keys_does_not_wait_for_the_store(
    new_server: NewServer, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a flood of unknown keys is counted as `unknown_key` without waiting for the store (3.2)."""
    monkeypatch.setattr(numbers, "BUSY_S", 600.0)
    server = await new_server()
    edge = await machines.receiver(server=server)
    queue = await keyed(edge)
    store = edge.service.store

    async def lacks() -> bool:
        strange = (store.catalogue.numbered("rqp-cast", 1000 + number) for number in range(numbers.BUSY))
        await asyncio.gather(*strange, return_exceptions=True)
        return store.catalogue.numbers.lacks("rqp-cast", 8)

    await until(lacks)
    with HandSender(machines.net) as hands:
        server.stop()
        hands.ask(8)
        await until(lambda: unanswered(edge, "unknown_key") == 1)
        server.cont()
        assert await hands.send(b"hello") is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]


async def test_flood_of_questions_causes_bounded_work(machines: Machines, hands: HandSender) -> None:
    """Check that a flood of questions causes bounded work, and others are answered meanwhile (3.2)."""
    edge = await machines.receiver(questions_per_second=100)
    await keyed(edge)
    chance = random.Random(1)
    with HandSender(machines.net, "127.0.0.5") as flood:
        for _ in range(40):
            for _ in range(100):
                flood.ask(chance.randrange(1 << 31, 1 << 32))
            await asyncio.sleep(0)
        assert await hands.send(b"hello") is Result.SUCCESS
        await until(lambda: unanswered(edge, "too_many_questions") > 0)
    looked_up = unanswered(edge, "unknown_key")
    assert looked_up < 1000, "of 4,000"


async def test_flood_from_forged_addresses_frees_its_ports(machines: Machines, hands: HandSender) -> None:
    """Check that a flood from forged addresses frees its ports after the connection timeout (1.2, 2.2)."""
    edge = await machines.receiver(max_sessions_per_address=100)
    for key in range(40):
        await keyed(edge, f"queue {key}", key=key)
    for address in range(20, 60):
        with HandSender(machines.net, f"127.0.0.{address}") as forged:
            forged.findreceiver.close()
            forged.ask(address - 20)
    await until(lambda: ended(edge, "connection_lost") + unanswered(edge, "ports_used_up") == 40)
    assert (await hands.asked()).key == 7
