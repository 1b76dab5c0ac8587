"""The store refuses, goes away, comes back, or holds another life of the node (ring.md 2.2, 4.5, 4.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node import counts
from services.ring.node.outgoing import outgoing, storing
from services.store import QueueSpec
from services.store.pipeline.async_client import AsyncClient
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Hand, Member, Ring, Start, is_mark, local_errors, lose_queue
from tests.servers import Server

OUTBOX = {"ring": {"outbox": 1}}


def numbered(count: int) -> list[bytes]:
    return [b"m%04d" % n for n in range(count)]


async def test_nothing_is_safe_while_the_store_is_away(start: Start, new_server: NewServer) -> None:
    """4.7: no `A`; then the node says that there is trouble, so that its links are closed."""
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


async def test_what_was_not_stored_in_time_is_forgotten_for_it_comes_again(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.2: the predecessor has broken the link by then. What comes after it is not held up."""
    server = await new_server()
    node = await start(server, b"a")
    monkeypatch.setattr(storing, "PATIENCE_S", 0.5)
    hand = Hand(node)
    server.kill9()
    hand.sends(b"lost with its link")
    await until(lambda: node.count(counts.UNSAFE) == 1)
    monkeypatch.undo()
    server.restart()
    hand.sends(b"comes later")
    await until(lambda: hand.safe == [b"comes later"])


async def test_a_fault_while_storing_is_told_and_costs_only_what_it_befell(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """2.2: what is not safe is not answered; who asked is told, as all behind it waits for that."""
    node = await Member(server.url, b"a").start()
    told: list[tuple[str, bool]] = []
    node.users.storing.put([], outgoing.BEGUN, lambda is_stored: told.append(("nothing", is_stored)))
    await until(lambda: told)
    node.users.storing.put([b"x"], outgoing.BEGUN, lambda is_stored: told.append(("x", is_stored)))
    await until(lambda: told == [("nothing", False), ("x", True)])
    assert [record.__dict__["action"] for record in caplog.records if record.exc_info] == ["job_failed"]
    assert local_errors(node) == 1
    await node.close()


async def test_what_was_refused_goes_in_before_what_came_behind_it(
    start: Start, new_server: NewServer
) -> None:
    """5.7: a ring keeps messages in order, also where the queue was away when the refusal came."""
    server = await new_server()
    node = await start(server, b"a")
    putting, queue, told = node.users.storing, node.users.ownership.queue, list[bool]()
    with server.configured(maxmemory="1mb"):
        for body in numbered(2):
            putting.put([body], outgoing.PASSED, told.append)
            await asyncio.sleep(0)
            assert not putting, "it is under way, by itself"
        putting.use(None)
        putting.put([b"m0002"], outgoing.PASSED, told.append)
        await until(lambda: len(putting) == 3)
    putting.use(queue)
    await until(lambda: told == [True] * 3)
    await until(lambda: len(node.users.outgoing) == 3)
    assert [parcel.payload for parcel in node.users.departures.take(10)] == numbered(3)


async def test_a_store_that_is_full_is_trouble_until_it_is_not(start: Start, new_server: NewServer) -> None:
    """docs/store.md, Bounds."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    with server.configured(maxmemory="1mb"):
        hand.sends(b"x", encode_frame(Frame(Operation.PUSH, b"b", b"elsewhere", b"1", b"3" * 16)))
        await until(lambda: node.users.readiness.unready() is not None)
        assert hand.safe == []
    await until(lambda: len(hand.safe) == 2)
    assert node.users.readiness.unready() is None


async def test_that_the_trouble_is_over_is_noticed_without_any_message(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.7: the links are closed meanwhile, so nothing comes."""
    server = await new_server()
    node = await start(server, b"a")
    monkeypatch.setattr(storing, "PATIENCE_S", 0.5)
    with server.configured(maxmemory="1mb"):
        Hand(node).sends(b"x")
        await until(lambda: node.count(counts.UNSAFE) == 1)
        assert node.users.readiness.unready() is not None
    await until(lambda: node.users.readiness.unready() is None)


async def test_a_session_that_was_given_up_costs_no_message(start: Start, server: Server) -> None:
    """docs/store.md, Sessions and leases: a process that stood still for too long finds its leases gone."""
    node = await start(server, b"a")
    hand = Hand(node)
    hand.sends(*numbered(6))
    await until(lambda: len(node.users.outgoing) == 6)
    domain = node.store.open_domain()
    session = domain.pipe.session
    server.call("ZREM", domain.keys.sessions, session)
    hand.sends(b"more")  # what is refused with the session is put in under the next one
    await until(lambda: domain.pipe.session != session)
    await until(lambda: len(node.users.outgoing) == 7)
    await until(lambda: node.users.ownership.queue is not None)
    sent = [parcel.payload for parcel in node.users.departures.take(10)]
    assert sent == [*numbered(6), b"more"]
    stats = await node.stats(node.users.queue_name)
    assert (stats["ready"], stats["in_flight"]) == (0, 7)


async def test_messages_on_their_way_survive_the_store_going_away(
    start: Start, server: Server, new_server: NewServer
) -> None:
    """A ring of two stores, one of which is killed and comes back, twice."""
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


async def test_a_second_node_of_the_same_name_sends_nothing_while_the_first_lives(
    start: Start, server: Server
) -> None:
    node = await start(server, b"a")
    second = Member(server.url, b"a")
    second.store.start_serving()
    second.users.start()
    await until(lambda: second.users.is_anothers)
    hand = Hand(second)
    hand.sends(*numbered(5))
    await until(lambda: len(hand.safe) == 5)
    assert second.users.departures.take(10) == []
    await until(lambda: node.users.outgoing.look() or node.users.outgoing)
    assert [parcel.payload for parcel in node.users.departures.take(10)] == numbered(5)
    await node.close()
    await until(lambda: second.users.ownership.queue is not None)
    await second.close()


async def test_who_lost_the_queue_lets_go_of_what_it_had(start: Start, server: Server) -> None:
    """A process that stood still for longer than its lease: the other one begins with all that is not settled."""
    node = await start(server, b"a")
    hand = Hand(node)
    hand.sends(*numbered(6))
    await until(lambda: len(hand.safe) == 6)
    await until(lambda: len(node.users.outgoing) == 6)
    held = node.users.departures.take(3)
    queue = await node.store.catalogue.find(node.users.queue_name)
    domain = node.store.open_domain()
    assert node.users.ownership.fence is not None
    await domain.claims.disown(queue, node.users.ownership.owner, node.users.ownership.fence)
    newer = await domain.claims.own(queue, "another", 60_000)
    assert newer is not None
    await domain.claims.reclaim(queue, newer)
    await until(lambda: node.users.is_anothers)
    assert node.users.departures.take(10) == []
    for parcel in held:
        parcel.acknowledged()
    assert [body async for body in ready(node)] == numbered(6)
    assert await domain.claims.disown(queue, "another", newer)
    await until(lambda: len(node.users.outgoing) == 6)
    assert [parcel.payload for parcel in node.users.departures.take(10)] == numbered(6)


async def ready(node: Member) -> AsyncIterator[bytes]:
    for body in await node.bodies(node.users.queue_name):
        yield body


async def test_a_queue_that_somebody_deleted_is_made_again(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    await lose_queue(node.store, node.users.queue_name)
    hand = Hand(node)
    hand.sends(*numbered(3))
    await until(lambda: len(hand.safe) == 3)
    await until(lambda: len(node.users.outgoing) == 3)
    assert [parcel.payload for parcel in node.users.departures.take(10)] == numbered(3)


async def test_what_somebody_else_put_in_goes_too_and_what_fits_no_message_does_not(
    start: Start, server: Server
) -> None:
    """2.1: the link would be closed over it, again and again."""
    node = await start(server, b"a")
    await node.put(node.users.queue_name, b"small", bytes(16385), b"behind")
    await until(lambda: len(node.users.outgoing) == 2)
    assert [parcel.payload for parcel in node.users.departures.take(10)] == [b"small", b"behind"]
    (letter,) = await node.dead(node.users.queue_name)
    assert (len(letter.body), letter.reason) == (16385, "too_large_for_ring")


async def test_a_paused_outgoing_queue_is_trouble(start: Start, server: Server) -> None:
    """An operator may do that: nothing is safe, and nothing is lost."""
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
    for parcel in node.users.departures.take(33):
        parcel.acknowledged()

    async def is_settled() -> bool:
        stats = await node.stats(node.users.queue_name)
        return bool(stats["acked"] == 33 and stats["in_flight"] == 67)

    await until(is_settled)


async def test_a_leased_outbox_message_is_moved_once(start: Start, server: Server) -> None:
    """Settled there and put in here in one step: the outbox's counters say how often."""
    node = await start(server, b"a")
    await node.declare("out", bindings=OUTBOX)
    await node.put("out", *numbered(1000))
    await until(lambda: node.users.outgoing)
    sent: list[bytes] = []

    def all_sent() -> bool:
        for parcel in node.users.departures.take(7):
            if not is_mark(parcel.payload):
                sent.append(parcel.payload)
            parcel.acknowledged()
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
    (parcel,) = node.users.departures.take(10)
    assert parcel.payload == b"x"
