"""Delivery of a transmission queue's messages to a receiving MCA without faults (rqp_mca.md 3)."""

from __future__ import annotations

import pytest

from protos.rqp_mca import AvailableConfirm, AvailableRequest, Profile, QueueConfirm, QueueRequest
from services.store import INTERNAL_CLIENT, Source
from services.store.model.records import encode
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE
from tests.rqp.mca.peer import Call, McaPeer, peer_settings
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


async def test_reliable_message_is_sent_confirmed_and_removed(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a reliable message is sent, confirmed and removed; the next needs no question (3, 3.4)."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.call()
    assert await call.next(AvailableRequest) == AvailableRequest(7)
    call.say(AVAILABLE)
    assert await call.next(QueueRequest) == QueueRequest(7)
    call.say(YOURS)
    assert await call.body() == b"one"
    assert (await edge.stats(queue))["in_flight"] == 1  # it is kept until it is confirmed
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    await edge.put(queue, b"two")
    assert await call.body() == b"two"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    await until(lambda: edge.value("penstock_rqp_sent_messages_total", protocol="rqp-mca") == 2)
    assert await edge.condition(queue) == ""
    await edge.check_nothing_is_left()


async def test_default_window_is_one(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that the default window is one (3.3)."""
    edge = await start(server, mca={"peers": peer_settings(peer), "data_timeout_s": 20.0})
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two", b"three")
    call = await peer.reserved()
    for body in (b"one", b"two", b"three"):
        assert await call.body() == body
        assert call.waiting == 0
        call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_window_limits_unconfirmed_messages(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that the window limits unconfirmed messages, confirmed in order (3.3)."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=3), "data_timeout_s": 20.0})
    queue = await edge.remote("away")
    await edge.put(queue, *(b"%d" % number for number in range(7)))
    call = await peer.reserved()
    assert await call.bodies(3) == [b"0", b"1", b"2"]
    assert call.waiting == 0
    call.confirm()
    assert await call.body() == b"3"
    assert call.waiting == 0
    call.confirm(3)
    assert await call.bodies(3) == [b"4", b"5", b"6"]
    call.confirm(3)
    await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize("profile", list(Profile))
async def test_peers_profile_is_used(server: Server, start: Start, peer: McaPeer, profile: Profile) -> None:
    """Check that the peer's profile is used (1.2)."""
    edge = await start(server, mca={"peers": peer_settings(peer, profile=profile)})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert call.parser.profile is profile
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_attributes_are_not_sent(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that attributes are not sent: the protocol has no place for them (1.1)."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=9)})
    queue = await edge.remote("away")
    records = [encode(b"bare"), encode(b"dressed", {"tag": "x"}), encode(b"")]
    done: list[object] = []
    edge.tools.open_domain("main").pipe.messages.publish(
        Source(INTERNAL_CLIENT), queue, records, "test", done.append
    )
    await until(lambda: done == [[]])
    call = await peer.reserved()
    assert await call.bodies(3) == [b"bare", b"dressed", b""]
    call.confirm(3)
    await until(lambda: edge.is_empty(queue))


async def test_unreliable_messages_are_removed_when_they_are_sent(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that unreliable messages are removed when they are sent (3: !MSG_DATA, removed, SENDER_IDLE_STATE)."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away", reliable=False)
    await edge.put(queue, *(b"%d" % number for number in range(200)))
    call = await peer.reserved()
    assert await call.bodies(200, UNRELIABLE) == [b"%d" % number for number in range(200)]
    await until(lambda: edge.is_empty(queue))
    await edge.check_nothing_is_left()


async def test_first_peer_with_the_queue_is_requested(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that the first peer with the queue is requested once all have answered (3, 3.5).

    The connections to others are closed (3.3).
    """
    settings = {"peers": peer_settings(peer, other_peer), "availability_timeout_s": 20.0}
    edge = await start(server, mca=settings)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call, other = await peer.asked(), await other_peer.asked()
    other.say(AVAILABLE)
    call.say(AVAILABLE)
    winner = await first_requested(call, other)
    loser = call if winner is other else other
    winner.say(YOURS)
    assert await winner.body() == b"one"
    winner.confirm()
    await loser.ended()
    await until(lambda: edge.is_empty(queue))


async def first_requested(*calls: Call) -> Call:
    """Return the peer that is asked to reserve the queue."""
    await until(lambda: any(call.waiting for call in calls))
    (asked,) = [call for call in calls if call.waiting]
    await asked.next(QueueRequest)
    return asked


async def test_messages_keep_their_order(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that messages keep their order, however the store packs them and however many are prefetched."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=50)})
    queue = await edge.remote("away")
    bodies = [b"%d" % number + b"." * (number % 300) for number in range(1_500)]
    await edge.put(queue, *bodies)
    call = await peer.reserved()
    got: list[bytes] = []
    while len(got) < len(bodies):
        got.append(await call.body())
        call.confirm()
    assert got == bodies
    await until(lambda: edge.is_empty(queue))
    await edge.check_nothing_is_left()


async def test_large_messages_are_sent_in_order(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that large messages are sent in order: more than the feed and a connection's buffers hold."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=20), "data_timeout_s": 20.0})
    queue = await edge.remote("away")
    bodies = [bytes([number]) * (1 << 20) for number in range(12)]
    for body in bodies:
        await edge.put(queue, body)
    call = await peer.reserved()
    for body in bodies:
        assert await call.body() == body
        call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_queues_do_not_block_each_other(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that queues do not block each other: each has its own machine and connection (3.2, 3.3)."""
    edge = await start(server, mca={"peers": peer_settings(peer), "data_timeout_s": 20.0})
    stuck, well = await edge.remote("stuck", 7), await edge.remote("well", 8)
    await edge.put(stuck, b"never confirmed")
    call = await peer.reserved(7)
    assert await call.body() == b"never confirmed"
    await edge.put(well, b"one")
    other = await peer.reserved(8)
    assert await other.body() == b"one"
    other.confirm()
    await until(lambda: edge.is_empty(well))
    assert not await edge.is_empty(stuck)


async def test_a_queue_goes_to_the_peers_that_it_names(
    server: Server, start: Start, peer: McaPeer, other_peer: McaPeer
) -> None:
    """Check that a queue goes to the peers that it names (3)."""
    edge = await start(server, mca={"peers": peer_settings(peer, other_peer)})
    queue = await edge.remote("away", peers=["p1"])
    await edge.put(queue, b"one")
    call = await other_peer.reserved()
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    assert peer.calls == []


async def test_messages_go_from_edge_to_edge_in_order(
    server: Server, new_server: NewServer, start: Start
) -> None:
    """Check that messages go in order between edges of two systems with a store each."""
    there = await start(await new_server())
    target = await there.numbered("orders", 7)
    here = await start(server, mca={"peers": {"there": {"addresses": [there.address], "window": 100}}})
    queue = await here.remote("away")
    bodies = [b"%d" % number for number in range(3_000)]
    await here.put(queue, *bodies)

    async def arrived() -> bool:
        return bool((await there.stats(target))["ready"] == len(bodies))

    await until(arrived)
    await until(lambda: here.is_empty(queue))
    assert await there.bodies(target) == bodies[:1000]
    await here.check_nothing_is_left()
    await there.check_nothing_is_left()


async def test_one_of_two_edges_of_a_system_reserves(
    server: Server, new_server: NewServer, start: Start
) -> None:
    """Check that one of two edges of a system reserves the queue (2.3, 3).

    Several servers of one store are several receiving MCAs.
    """
    far = await new_server()
    there = [await start(far), await start(far)]
    target = await there[0].numbered("orders", 7)
    peers = {f"there{n}": {"addresses": [edge.address]} for n, edge in enumerate(there)}
    here = await start(server, mca={"peers": peers})
    queue = await here.remote("away")
    await here.put(queue, b"one", b"two")
    await until(lambda: here.is_empty(queue))
    assert await there[0].bodies(target) == [b"one", b"two"]


async def test_existing_queue_is_sent(server: Server, start: Start, peer: McaPeer) -> None:
    first: LiveEdge = await start(server)
    queue = await first.remote("away")
    await first.put(queue, b"one")
    await first.check_nothing_is_left()
    await first.service.stop_taking()  # it no longer owns the queue
    edge = await start(server, mca={"peers": peer_settings(peer)})
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_too_large_message_is_refused(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a message that is too large is refused when put in, and the largest allowed one is sent (3.1)."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away", maxMessageBytes=100)
    async_client = AsyncClient(edge.tools.open_domain("main").pipe)
    ((index, why),) = await async_client.publish(queue, [encode(b"x" * 100), encode(b"y" * 101)], "test")
    assert (index, why.reason) == (1, "too_large_for_peers")
    call = await peer.reserved()
    assert await call.body() == b"x" * 100
    call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_peer_that_does_not_read_pauses_sending(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that a peer that does not read pauses UNRELIABLE sending: the rest stays in the queue."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away", reliable=False)
    await edge.put(queue, b"first")
    call = await peer.reserved()
    assert await call.body(UNRELIABLE) == b"first"
    await call.stop_reading()
    for number in range(64):
        await edge.put(queue, bytes([number]) * (1 << 20))
    await until(lambda: edge.output.total > 0)
    stats = await edge.stats(queue)
    assert stats["ready"] > 32
    assert edge.output.total < 16 << 20
    call.reset()
    again = await peer.reserved()
    await again.body(UNRELIABLE)
    await until(lambda: edge.is_empty(queue))


async def test_attribute_overrides_certainty(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that an attribute overrides certainty: both kinds keep their order (3: {queue_id, type, body}).

    An UNRELIABLE one waits for earlier confirms (3.3).
    """
    edge = await start(server, mca={"peers": peer_settings(peer, window=9), "data_timeout_s": 20.0})
    queue = await edge.remote("away")
    results = [(b"0", {}), (b"1", {"certain": False}), (b"2", {"certain": False}), (b"3", {"certain": True})]
    await edge.put_records(queue, *(encode(body, how) for body, how in [*results, (b"4", {"certain": "no"})]))
    call = await peer.reserved()
    assert await call.body() == b"0"
    assert call.waiting == 0
    call.confirm()
    assert await call.bodies(2, UNRELIABLE) == [b"1", b"2"]
    assert await call.bodies(2) == [b"3", b"4"]
    call.confirm(2)
    await until(lambda: edge.is_empty(queue))
    await edge.check_nothing_is_left()


async def test_certain_message_in_an_uncertain_queue_is_resent(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a certain message in an uncertain queue is kept and resent as RELIABLE (3, 3.6)."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away", reliable=False)
    await edge.put_records(queue, encode(b"once"), encode(b"kept", {"certain": True}), encode(b"behind"))
    call = await peer.reserved()
    assert await call.body(UNRELIABLE) == b"once"
    assert await call.body() == b"kept"
    call.reset()
    again = await peer.reserved()
    assert await again.body() == b"kept"
    again.confirm()
    assert await again.body(UNRELIABLE) == b"behind"
    await until(lambda: edge.is_empty(queue))
