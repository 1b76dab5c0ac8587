"""Stores that refuse, fail, recover, or have another process of the node (ring.md 2.2, 4.5, 4.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing import outgoing
from services.ring.node.outgoing import writer as writer
from services.store import QueueSpec
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Hand, Member, Ring, Start, is_mark, local_errors, lose_queue
from tests.servers import Server

OUTBOX = {"ring": {"outbox": 1}}


def numbered(count: int) -> list[bytes]:
    return [b"m%04d" % n for n in range(count)]


async def test_no_message_is_acknowledged_while_the_store_is_away(
    start: Start, new_server: NewServer
) -> None:
    """Check that no message is acknowledged while the store is down (4.7).

    The node then reports trouble, so that its links are closed.
    """
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    server.kill9()
    hand.sends(*numbered(20))
    await until(lambda: node.users.readiness.unready() is not None)
    assert hand.safe == []
    server.restart()
    await until(lambda: len(hand.safe) == 20)
    assert hand.safe == numbered(20)
    await until(lambda: node.users.readiness.unready() is None)


async def test_message_not_stored_in_time_is_dropped_unanswered(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a message not stored in time is dropped unanswered (2.2).

    The predecessor has broken the link by then. Later messages are not delayed.
    """
    server = await new_server()
    node = await start(server, b"a")
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    hand = Hand(node)
    server.kill9()
    hand.sends(b"lost with its link")
    await until(lambda: node.count(UserOutcome.UNSAFE) == 1)
    monkeypatch.undo()
    server.restart()
    hand.sends(b"comes later")
    await until(lambda: hand.safe == [b"comes later"])


async def test_internal_error_while_storing_affects_one_run(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that an internal error while storing affects one run (2.2).

    Unsafe messages are not answered; the caller is notified, as all later messages wait for it.
    """
    node = await Member(server.url, b"a").start()
    results: list[tuple[str, bool]] = []
    node.users.writer.put([], outgoing.BEGUN, lambda is_stored: results.append(("nothing", is_stored)))
    await until(lambda: results)
    node.users.writer.put([b"x"], outgoing.BEGUN, lambda is_stored: results.append(("x", is_stored)))
    await until(lambda: results == [("nothing", False), ("x", True)])
    assert [record.__dict__["action"] for record in caplog.records if record.exc_info] == ["job_failed"]
    assert local_errors(node) == 1
    await node.close()


async def test_refused_messages_are_stored_before_later_ones(start: Start, new_server: NewServer) -> None:
    """Check that refused messages are stored before later ones, also if the store was down meanwhile (5.7).

    A ring keeps messages in order.
    """
    server = await new_server()
    node = await start(server, b"a")
    putting, queue, reported = node.users.writer, node.users.ownership.queue, list[bool]()
    with server.configured(maxmemory="1mb"):
        for body in numbered(2):
            putting.put([body], outgoing.PASSED, reported.append)
            await asyncio.sleep(0)
            assert not putting, "it is under way alone"
        putting.use(None)
        putting.put([b"m0002"], outgoing.PASSED, reported.append)
        await until(lambda: len(putting) == 3)
    putting.use(queue)
    await until(lambda: reported == [True] * 3)
    await until(lambda: len(node.users.outgoing) == 3)
    assert [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)] == numbered(3)


async def test_full_store_makes_the_node_unready(start: Start, new_server: NewServer) -> None:
    """Check that a full store makes the node unready (docs/store.md, Bounds)."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    with server.configured(maxmemory="1mb"):
        hand.sends(b"x", encode_frame(Frame(Operation.PUSH, b"b", b"elsewhere", b"1", b"3" * 16)))
        await until(lambda: node.users.readiness.unready() is not None)
        assert hand.safe == []
    await until(lambda: len(hand.safe) == 2)
    assert node.users.readiness.unready() is None


async def test_recovery_is_noticed_without_messages(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that recovery is noticed without messages: the links are closed meanwhile (4.7)."""
    server = await new_server()
    node = await start(server, b"a")
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    with server.configured(maxmemory="1mb"):
        Hand(node).sends(b"x")
        await until(lambda: node.count(UserOutcome.UNSAFE) == 1)
        assert node.users.readiness.unready() is not None
    await until(lambda: node.users.readiness.unready() is None)


async def test_lost_store_session_loses_no_message(start: Start, server: Server) -> None:
    """Check that a lost store session loses no message.

    A process that was stopped for too long finds its leases expired (docs/store.md, Sessions and leases).
    """
    node = await start(server, b"a")
    hand = Hand(node)
    hand.sends(*numbered(6))
    await until(lambda: len(node.users.outgoing) == 6)
    domain = node.store.open_domain()
    session = domain.pipe.session
    server.call("ZREM", domain.keys.sessions, session)
    hand.sends(b"more")  # messages refused with the session are stored under the next one
    await until(lambda: domain.pipe.session != session)
    await until(lambda: len(node.users.outgoing) == 7)
    await until(lambda: node.users.ownership.queue is not None)
    sent = [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)]
    assert sent == [*numbered(6), b"more"]
    stats = await node.stats(node.users.queue_name)
    assert (stats["ready"], stats["in_flight"]) == (0, 7)


async def test_messages_survive_a_store_outage(start: Start, server: Server, new_server: NewServer) -> None:
    """Check that messages survive outages in a ring of two stores, one of which is killed and restarted twice."""
    fragile = await new_server()
    one, other = await start(server, b"a"), await start(fragile, b"b", forward_user=True)
    await other.declare("in", bindings={"ring": {"inbox": 1}})
    await until(lambda: other.users.bindings.inbox)
    await one.declare("out", bindings=OUTBOX)
    Ring([one, other], window=8)
    for turn in range(2):
        await one.put("out", *numbered(300)[turn * 150 : turn * 150 + 150])
        fragile.kill9()
        await asyncio.sleep(0.2)
        fragile.restart()

    async def got() -> bool:
        return set(await other.bodies("in")) == set(numbered(300))

    await until(got)


async def test_second_node_of_the_same_name_sends_nothing(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    second = Member(server.url, b"a")
    second.store.start_serving()
    second.users.start()
    await until(lambda: second.users.ownership.is_owned_elsewhere)
    hand = Hand(second)
    hand.sends(*numbered(5))
    await until(lambda: len(hand.safe) == 5)
    assert second.users.user_source.take(10) == []
    await until(lambda: node.users.outgoing.poll() or node.users.outgoing)
    assert [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)] == numbered(5)
    await node.close()
    await until(lambda: second.users.ownership.queue is not None)
    await second.close()


async def test_former_owner_drops_its_leases(start: Start, server: Server) -> None:
    """Check that a former owner drops its leases after a stall longer than its lease.

    The other process begins with all unsettled messages.
    """
    node = await start(server, b"a")
    hand = Hand(node)
    hand.sends(*numbered(6))
    await until(lambda: len(hand.safe) == 6)
    await until(lambda: len(node.users.outgoing) == 6)
    held = node.users.user_source.take(3)
    queue = await node.store.catalogue.find(node.users.queue_name)
    domain = node.store.open_domain()
    assert node.users.ownership.fence is not None
    await domain.claims.disown(queue, node.users.ownership.owner, node.users.ownership.fence)
    newer = await domain.claims.own(queue, "another", 60_000)
    assert newer is not None
    await domain.claims.reclaim(queue, newer)
    await until(lambda: node.users.ownership.is_owned_elsewhere)
    assert node.users.user_source.take(10) == []
    for outgoing_message in held:
        outgoing_message.acknowledged()
    assert [body async for body in ready(node)] == numbered(6)
    assert await domain.claims.disown(queue, "another", newer)
    await until(lambda: len(node.users.outgoing) == 6)
    assert [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)] == numbered(6)


async def ready(node: Member) -> AsyncIterator[bytes]:
    for body in await node.bodies(node.users.queue_name):
        yield body


async def test_deleted_outgoing_queue_is_recreated(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    await lose_queue(node.store, node.users.queue_name)
    hand = Hand(node)
    hand.sends(*numbered(3))
    await until(lambda: len(hand.safe) == 3)
    await until(lambda: len(node.users.outgoing) == 3)
    assert [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)] == numbered(3)


async def test_messages_of_other_writers_are_sent_and_oversized_ones_buried(
    start: Start, server: Server
) -> None:
    """Check that messages of other writers are sent, and oversized ones become dead letters.

    2.1: otherwise the link would be closed over an oversized one, again and again.
    """
    node = await start(server, b"a")
    await node.put(node.users.queue_name, b"small", bytes(16385), b"behind")
    await until(lambda: len(node.users.outgoing) == 2)
    assert [outgoing_message.payload for outgoing_message in node.users.user_source.take(10)] == [
        b"small",
        b"behind",
    ]
    (letter,) = await node.dead(node.users.queue_name)
    assert (len(letter.body), letter.reason) == (16385, "too_large_for_ring")


async def test_paused_outgoing_queue_makes_the_node_unready(start: Start, server: Server) -> None:
    """Check that a paused outgoing queue makes the node unready; nothing is safe, and nothing is lost."""
    node = await start(server, b"a")
    spec = QueueSpec(max_deliveries=0, paused=True)
    await node.store.catalogue.declare(node.users.queue_name, spec, "edge:ring", replace=True, internal=True)
    hand = Hand(node)
    hand.sends(b"x")
    await until(lambda: node.users.readiness.unready() == "storing: the queue is paused")
    spec = QueueSpec(max_deliveries=0)
    await node.store.catalogue.declare(node.users.queue_name, spec, "edge:ring", replace=True, internal=True)
    await until(lambda: hand.safe == [b"x"])


async def test_answered_messages_are_settled_soon(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    hand = Hand(node)
    hand.sends(*numbered(100))
    await until(lambda: len(node.users.outgoing) == 100)
    for outgoing_message in node.users.user_source.take(33):
        outgoing_message.acknowledged()

    async def is_settled() -> bool:
        stats = await node.stats(node.users.queue_name)
        return bool(stats["acked"] == 33 and stats["in_flight"] == 67)

    await until(is_settled)


async def test_a_leased_outbox_message_is_moved_once(start: Start, server: Server) -> None:
    """Check that a leased outbox message is moved once: settled and put in one step, as the counters show."""
    node = await start(server, b"a")
    await node.declare("out", bindings=OUTBOX)
    await node.put("out", *numbered(1000))
    await until(lambda: node.users.outgoing)
    sent: list[bytes] = []

    def all_sent() -> bool:
        for outgoing_message in node.users.user_source.take(7):
            if not is_mark(outgoing_message.payload):
                sent.append(outgoing_message.payload)
            outgoing_message.acknowledged()
        return len(sent) >= 1000

    await until(all_sent)
    assert sent == numbered(1000)
    stats = await node.stats("out")
    assert (stats["acked"], stats["returned"], stats["ready"]) == (1000, 0, 0)


async def test_an_outbox_in_another_domain_is_served_too(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    await node.declare("out", bindings=OUTBOX, domain="elsewhere")
    queue = await node.store.catalogue.find("out")
    await node.store.open_domain("elsewhere").pipe.ready()
    assert await AsyncClient(node.service.pipe(queue)).publish(queue, [b"\0\0\0\1x"], "test") == []
    await until(lambda: node.users.outgoing)
    (outgoing_message,) = node.users.user_source.take(10)
    assert outgoing_message.payload == b"x"
