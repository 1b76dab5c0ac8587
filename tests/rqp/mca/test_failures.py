"""Messages while no peer has or reserves their queue (rqp_mca.md 3.1, 3.5)."""

from __future__ import annotations

import asyncio

from protos.rqp_mca import AvailableConfirm, QueueConfirm, QueueRequest
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.mca.failing import failures, sending_edge
from tests.rqp.mca.peer import McaPeer
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


# --- no peer has the queue


async def test_reliable_message_without_peers_waits(server: Server, start: Start) -> None:
    """Check that a reliable message without peers stays first (3.1, 3.5).

    The condition says why, and it is logged once.
    """
    edge = await sending_edge(server, start, availability_timeout_s=0.05)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.has_condition(queue, "no_receiver: no peer is known"))
    await until(lambda: failures(edge, "no_receiver") >= 3)
    (line,) = edge.log.events("rqp_stuck", queue="away")
    assert "no peer is known" in line.getMessage()
    assert edge.value("penstock_rqp_stuck_queues", protocol="rqp-mca") == 1
    assert not await edge.is_empty(queue)
    assert await edge.dead(queue) == []
    await edge.check_nothing_is_left()
    assert await edge.bodies(queue) == [b"one"]
    assert await edge.condition(queue) == ""  # no owner sets a condition
    assert edge.value("penstock_rqp_stuck_queues", protocol="rqp-mca") == 0


async def test_reliable_message_without_answers_is_retried(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a reliable message without answers is retried after a pause, and delivered once (3, 3.1)."""
    edge = await sending_edge(server, start, peer, availability_timeout_s=0.05)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    for _ in range(3):
        call = await peer.asked()
        await call.ended()
    await until(lambda: edge.has_condition(queue, "no_receiver: no peer has queue 7"))
    while True:
        call = await peer.asked()
        call.say(AVAILABLE)
        with_it = asyncio.ensure_future(call.next(QueueRequest))
        try:
            await with_it
        except AssertionError:
            continue  # the answer was late: another question follows
        break
    call.say(YOURS)
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    await until(lambda: edge.has_no_condition(queue))
    assert await edge.condition(queue) == ""
    assert len(edge.log.events("rqp_stuck", queue="away")) == 1
    assert edge.value("penstock_rqp_stuck_queues", protocol="rqp-mca") == 0


async def test_unreliable_message_without_answers_is_dead_lettered(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that an unreliable message without answers is dead-lettered with `no_receiver` (3, 3.1).

    Each message has its own question.
    """
    edge = await sending_edge(server, start, peer, availability_timeout_s=0.05)
    queue = await edge.remote("away", reliable=False)
    await edge.put(queue, b"one", b"two")
    for _ in range(2):
        call = await peer.asked()
        await call.ended()

    async def are_dead() -> bool:
        return len(await edge.dead(queue)) == 2

    await until(are_dead)
    letters = await edge.dead(queue)
    assert [(letter.body, letter.reason) for letter in letters] == [
        (b"one", "no_receiver"),
        (b"two", "no_receiver"),
    ]
    assert letters[0].error == "no_receiver: no peer has queue 7"
    assert await edge.is_empty(queue)
    await edge.check_nothing_is_left()


async def test_unreachable_peer_is_skipped(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that an unreachable peer is skipped, and another one gets the message at once (3.3, 3.5)."""
    closed = McaPeer()
    await closed.listen()
    closed.die()
    edge = await sending_edge(server, start, closed, peer, availability_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))


# --- candidates that refuse


async def test_reliable_message_refused_by_all_candidates_waits(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that a reliable message refused by all candidates waits (3).

    After each timeout the next is asked; with none left it is as if no peer had the queue.
    """
    edge = await sending_edge(server, start, peer, other_peer, request_timeout_s=0.1)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call, other = await peer.asked(), await other_peer.asked()
    call.say(AVAILABLE)
    other.say(AVAILABLE)
    await call.ended()  # its request is not answered, so it is closed (3.3)
    await other.ended()
    assert call.waiting == other.waiting == 1  # one MSG_QUEUE_REQUEST each
    await until(lambda: edge.has_condition(queue, "not_reserved: "))
    assert not await edge.is_empty(queue)
    assert failures(edge, "not_reserved") >= 1


async def test_unreliable_message_refused_by_all_is_dead_lettered(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that an unreliable message refused by all is dead-lettered (3).

    The spec: "no candidate left: as for time-out, none".
    """
    edge = await sending_edge(server, start, peer, request_timeout_s=0.1)
    queue = await edge.remote("away", reliable=False)
    await edge.put(queue, b"one")
    call = await peer.requested()
    await call.ended()

    async def is_dead() -> bool:
        return [letter.reason for letter in await edge.dead(queue)] == ["no_receiver"]

    await until(is_dead)
    (letter,) = await edge.dead(queue)
    assert letter.error.startswith("not_reserved: ")


async def test_next_candidate_is_asked_after_a_refusal(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that the next candidate is asked after a refusal by timeout (3)."""
    edge = await sending_edge(server, start, peer, other_peer, request_timeout_s=0.2)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call, other = await peer.asked(), await other_peer.asked()
    call.say(AVAILABLE)
    other.say(AVAILABLE)
    await until(lambda: call.waiting or other.waiting)
    first, second = (call, other) if call.waiting else (other, call)
    await first.next(QueueRequest)
    await second.next(QueueRequest)  # `first` sent nothing during its timeout
    await first.ended()
    second.say(YOURS)
    assert await second.body() == b"one"
    second.confirm()
    await until(lambda: edge.is_empty(queue))
