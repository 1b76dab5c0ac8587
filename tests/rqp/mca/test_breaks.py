"""Messages whose receiver dies or does not confirm (rqp_mca.md 3.1, 3.3)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_mca import AvailableConfirm, Data, QueueConfirm, QueueRequest
from services.store.model import records
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.mca.client import UNRELIABLE
from tests.rqp.mca.failing import failures, sending_edge
from tests.rqp.mca.peer import McaPeer, take_one
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


# --- a receiver that dies in each state


async def test_peer_dies_when_asked(server: Server, start: Start, peer: McaPeer, other_peer: McaPeer) -> None:
    """Check that a peer that dies when asked is dropped, without affecting others (3.3)."""
    edge = await sending_edge(server, start, peer, other_peer, availability_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    dying, call = await peer.asked(), await other_peer.asked()
    call.say(AVAILABLE)
    dying.reset()
    await call.next(QueueRequest)
    call.say(YOURS)
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_peer_dies_when_requested(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that a peer that dies when requested counts as a timeout: the next candidate is requested (3.3)."""
    edge = await sending_edge(server, start, peer, other_peer, request_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call, other = await peer.asked(), await other_peer.asked()
    call.say(AVAILABLE)
    other.say(AVAILABLE)
    await until(lambda: call.waiting or other.waiting)
    first, second = (call, other) if call.waiting else (other, call)
    await first.next(QueueRequest)
    first.reset()
    await second.next(QueueRequest)
    second.say(YOURS)
    assert await second.body() == b"one"
    second.confirm()
    await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_peer_dies_with_messages_in_flight(
    server: Server, start: Start, peer: McaPeer, how: str
) -> None:
    """Check that after a peer dies with messages in flight all peers are asked (3).

    3.1: the first failure causes no pause.
    """
    edge = await sending_edge(server, start, peer, data_timeout_s=20.0, first_pause_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    getattr(call, how)()
    again = await peer.reserved()
    assert await again.body() == b"one"
    await until(lambda: edge.has_condition(queue, "connection_lost: "))
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    await until(lambda: edge.has_no_condition(queue))
    assert failures(edge, "connection_lost") == 1
    assert edge.value("penstock_rqp_unconfirmed_messages_total", protocol="rqp-mca") == 1


async def test_peer_dies_while_idle(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a peer that dies while idle is forgotten without a failure (3.4)."""
    edge = await sending_edge(server, start, peer)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    call.reset()
    await until(lambda: not edge.diallers[0].connections)
    await edge.put(queue, b"two")
    again = await peer.reserved()
    assert await again.body() == b"two"
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert failures(edge, "connection_lost") == 0


# --- lost, late and missing confirmations


async def test_lost_confirmation_causes_a_duplicate(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a lost confirmation causes a duplicate: delivery is at least once (3.3).

    The connection is closed, so a late confirmation never counts for another message.
    """
    edge = await sending_edge(server, start, peer)
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    assert await again.body() == b"two"
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert failures(edge, "data_timeout") == 1


async def test_repeated_failures_cause_pauses(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that repeated failures cause pauses for a peer that reserves and then refuses the data (3.1)."""
    edge = await sending_edge(server, start, peer, first_pause_s=0.4, max_pause_s=60.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    loop = asyncio.get_running_loop()
    refused: list[float] = []
    for _ in range(4):
        call = await peer.reserved()
        if refused:
            refused[-1] = loop.time() - refused[-1]
        assert await call.body() == b"one"
        call.reset()
        refused.append(loop.time())
    assert refused[1] >= 0.4
    assert refused[2] >= 0.8
    await until(lambda: edge.has_condition(queue, "connection_lost: "))
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    assert len(edge.log.events("rqp_stuck")) == 1


@pytest.mark.parametrize("window", [1, 4])
async def test_lost_connection_resends_all_unconfirmed_messages(
    server: Server, start: Start, peer: McaPeer, window: int
) -> None:
    """Check that a lost connection resends all unconfirmed messages of a window in order (3.3)."""
    edge = await sending_edge(server, start, peer, window=window, data_timeout_s=20.0)
    queue = await edge.remote("away")
    bodies = [b"%d" % number for number in range(8)]
    await edge.put(queue, *bodies)
    call = await peer.reserved()
    assert await call.body() == b"0"
    call.confirm()
    assert await call.bodies(window) == bodies[1 : 1 + window]
    call.reset()
    again = await peer.reserved()
    for body in bodies[1:]:
        assert await again.body() == body
        again.confirm()
    await until(lambda: edge.is_empty(queue))


# --- messages that are too large


async def test_message_over_a_lowered_limit_is_dead_lettered(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a message over a lowered limit is dead-lettered (3.1).

    A message over the peers' limit is refused when it is put in; an older one does not block the queue.
    """
    first = await start(server)
    queue = await first.remote("away")
    await first.put(queue, b"small", b"x" * 100, b"small too", b"y" * 101)
    await first.check_nothing_is_left()
    await first.service.stop_taking()  # it no longer owns the queue
    await first.replace_remote("away", maxMessageBytes=99)
    edge = await sending_edge(server, start, peer)
    call = await peer.reserved()
    assert await call.body() == b"small"
    call.confirm()
    assert await call.body() == b"small too"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    letters = await edge.dead(queue)
    assert [(letter.body[:1], letter.reason) for letter in letters] == [
        (b"x", "too_large_for_peers"),
        (b"y", "too_large_for_peers"),
    ]


async def test_attributes_do_not_count_towards_the_limit(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that attributes do not count towards the limit, as they are not sent (3.1).

    `penstock rqp send --reliable` puts messages in alone, or several in one entry.
    """
    first = await start(server)
    queue = await first.remote("away", maxMessageBytes=101)
    fields = {"certain": True, "beside": "x" * 200}
    bodies = [b"%d" % number + b"y" * size for number, size in enumerate((99, 99, 100, 99))]
    for body in bodies:
        await first.put_records(queue, records.encode(body, fields))
    await first.put_records(queue, *(records.encode(body, fields) for body in bodies))
    await first.check_nothing_is_left()
    await first.service.stop_taking()  # it no longer owns the queue
    await first.replace_remote("away", maxMessageBytes=100)
    edge = await sending_edge(server, start, peer)
    call = await peer.reserved()
    for body in (bodies[0], bodies[1], bodies[3]) * 2:
        await take_one(call, body)
    await until(lambda: edge.is_empty(queue))
    results = [(letter.body, letter.reason, letter.error) for letter in await edge.dead(queue)]
    assert results == [(bodies[2], "too_large_for_peers", "101 octets; peers accept 100")] * 2


async def test_unreliable_messages_continue_after_a_lost_connection(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that unreliable messages continue after a lost connection: each is sent once (3)."""
    edge = await sending_edge(server, start, peer)
    queue = await edge.remote("away", reliable=False)
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body(UNRELIABLE) == b"one"
    call.reset()
    await until(lambda: not edge.diallers[0].connections)
    await edge.put(queue, b"two")
    again = await peer.reserved()
    event = await again.next(Data)
    assert (event.kind, event.records[0][4:]) == (UNRELIABLE, b"two")
