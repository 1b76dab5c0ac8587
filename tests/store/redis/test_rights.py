"""The edges' user needs exactly the rights of services/store/redis/rights.py (architecture: security)."""

from __future__ import annotations

import asyncio

import pytest
from redis.exceptions import ResponseError

from services.store import INTERNAL_CLIENT, CommitPart, DeadLetters, Outcome, Queue, QueueSpec, Source, Store
from services.store.catalogue.audit import AuditEntry
from services.store.log import tail as tail_module
from services.store.log.log import Log, LogSpec
from services.store.log.replica import Arrived, Gap, Replica
from services.store.log.tail import Tail
from services.store.model import records
from services.store.model.errors import StoreUnavailable
from services.store.model.identities import JournalNumber, RequestId, TransactionId
from services.store.model.operations import Send
from services.store.model.peer import PeerSpec
from services.store.model.requests import Pulled, Settlement
from services.store.pipeline.async_client import AsyncClient
from services.store.redis.connect import Connector
from services.store.redis.rights import acl_rules
from tests.servers import Server
from tests.store.desk import until
from tests.store.member import Member
from tests.stores import every_server

PASSWORD = "not secret"


@every_server
async def test_edges_user_has_sufficient_rights(server: Server) -> None:
    administrator = Store(server.url, "admin")
    await administrator.initialise()
    await administrator.close()
    server.call("ACL", "SETUSER", "edge", *acl_rules(), f">{PASSWORD}")
    try:
        url = f"redis://edge:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}"
        await work_with(Store(url, "test", observe=Member("test")), Store(url, "other"))
    finally:
        server.call("ACL", "DELUSER", "edge")


async def work_with(store: Store, other: Store) -> None:
    """Use every operation once; `other` is another process."""
    spec = QueueSpec(max_deliveries=1)
    queue, _ = await store.catalogue.declare("rights", spec, "test")
    store.start_serving()
    domain = store.open_domain()
    await domain.pipe.ready()
    ask = AsyncClient(domain.pipe)
    assert await ask.publish(queue, [records.encode(b"%d" % n) for n in range(40)], "test") == []
    first = await ask.take(queue, 3)
    await ask.settle(first)
    back = await ask.take(queue, 2)
    await ask.release(back)
    both = await ask.take(queue, 1)
    await ask.commit("rights-1", [CommitPart(queue, both, [records.encode(b"in its place")], "test")])
    domain.pipe.messages.release(Source(INTERNAL_CLIENT), await ask.take(queue, 1), failed=True)
    assert len(await domain.peek(queue, 5)) > 0
    letters = DeadLetters(domain, queue)
    dead = [letter.id async for letter in letters.matching()]
    assert (await letters.redrive(dead)).moved == 1
    assert await letters.purge(dead) == 0
    fence = await domain.claims.reserve(queue, "me", 60_000)
    assert fence
    assert await domain.claims.release_reservation(queue, "me", fence)
    await domain.claims.available(queue, "me")
    owned = await domain.claims.own(queue, "me", 60_000)
    assert owned is not None
    assert await domain.claims.reclaim(queue, owned) == 0
    assert await domain.claims.set_condition(queue, "bad", owned)
    assert await domain.claims.set_condition(queue, "", owned)
    assert await domain.claims.disown(queue, "me", owned)
    await ask.publish(queue, [records.encode(b"for a sample")], "test")
    await ask.settle(await ask.take(queue, 1000))
    await store.sampler.write()
    assert await domain.tidy(queue) == {"len": 0, "bytes": 0, "leased": 0}
    await domain.sweep()
    assert (await store.listing.stats(queue))["dead"] == 1
    assert [q.name async for q in store.listing.queues()] == ["rights"]
    await work_with_processes(store, queue)
    await work_with_rqp(store, queue)
    await work_with_a_ring(store, other, await store.catalogue.find("rights"))
    await store.catalogue.delete(await store.catalogue.find("rights"))
    await work_with_the_log(store)
    await store.close()


async def work_with_processes(store: Store, queue: Queue) -> None:
    """Use the console's questions, and their answers."""

    async def answered() -> bool:
        return bool((await store.processes.inquire("numbers")).answers)

    await until(answered)
    assert [one.edge for one in await store.processes.running()] == ["test"]
    assert list((await store.listing.stats_of([queue])).stats) == ["rights"]
    await store.audit.append(AuditEntry("eve", "admin", "", "delete", "rights", "done"))
    assert len((await store.audit.page()).lines) == 1
    assert await store.following("main", 60_000).earlier()
    assert await store.following("main", 60_000).next() is not None


async def work_with_rqp(store: Store, queue: Queue) -> None:
    """Use further operations of the RQP edges and the System V bridge."""
    ask, record = AsyncClient(store.open_domain().pipe), records.encode(b"x")
    assert await ask.publish_once(TransactionId("once", 60_000), queue, record, "test") is Outcome.STORED
    assert await ask.publish_once(JournalNumber("host", 1), queue, record, "test") is Outcome.STORED
    assert (
        await ask.publish_once(JournalNumber("host", 2), queue, record, "test", reason="injured")
    ) is Outcome.STORED
    held = await ask.take(queue, 1)
    await ask.note(held[0], "noted")
    await ask.settle(held)
    letters = DeadLetters(store.open_domain(), queue)
    assert await letters.purge([letter.id async for letter in letters.matching()]) == 1
    number = {"bindings": {"rqpMca": {"queueId": 7}}}
    await store.catalogue.declare("rights", QueueSpec(max_deliveries=1, **number), "test", replace=True)
    assert (await store.catalogue.numbered("rqp-mca", 7)).qid == queue.qid
    assert await store.registry.numbers() == {"rqp-mca 7": "rights"}
    remote = {"protocol": "rqp-mca", "queueId": 7}
    await store.catalogue.declare("rights", QueueSpec(max_deliveries=1, remote=remote), "test", replace=True)
    assert [q.name for q in await store.catalogue.remotes()] == ["rights"]
    assert await store.registry.next_ids(10) < await store.registry.next_ids(1)
    await store.peers.apply("shop", PeerSpec(protocol="rqp-mca", addresses=["10.0.0.7"]), "cli")
    assert [peer.name for peer in await store.peers.all()] == ["shop"]
    assert await store.peers.find("shop")
    assert await store.peers.delete("shop")
    event = store.wakes().event(queue)
    event.clear()
    await event.wait()


async def work_with_a_ring(store: Store, other: Store, queue: Queue) -> None:
    """Use further operations of the ring edge (docs/store.md)."""
    pipe, outcomes, (first, second) = store.open_domain().pipe, list[object](), (b"a" * 16, b"b" * 16)
    for _ in range(2):
        pipe.idempotent.publish(
            Source(INTERNAL_CLIENT),
            RequestId(first, 60_000),
            queue,
            records.encode(b"x"),
            "test",
            outcomes.append,
        )
    # too large: it goes back
    pipe.idempotent.pull(Source(INTERNAL_CLIENT), second, queue, 0, 60_000, outcomes.append)
    await until(lambda: len(outcomes) == 3)
    assert outcomes[:2] == [Outcome.STORED, Outcome.AGAIN]
    await work_with_a_lease(store, other, queue)
    await store.ring_nodes.put(7, "node", {"leader": "node"})
    assert [node.name for node in await store.ring_nodes.all()] == ["node"]
    assert await store.ring_nodes.remove(7, "node")
    assert await store.registry.remember_reply(first, "done", 60_000) == "done"
    assert await store.registry.reply_of(first) == "done"


async def work_with_a_lease(store: Store, other: Store, queue: Queue) -> None:
    """Make a pull that another process repeats and settles."""
    pipes = (store.open_domain().pipe, other.open_domain().pipe)
    results: list[object] = []
    for number, pipe in enumerate(pipes, 1):
        await pipe.ready()
        pipe.idempotent.pull(Source(INTERNAL_CLIENT), b"c" * 16, queue, 100, 60_000, results.append)
        await until(lambda number=number: len(results) == number)
    pipes[1].idempotent.settle(Source(INTERNAL_CLIENT), b"c" * 16, queue, results.append)
    await until(lambda: len(results) == 3)
    assert [type(one) for one in results] == [Pulled, Pulled, Settlement]
    await other.close()


async def work_with_the_log(store: Store) -> None:
    """Use every operation of the text service once."""
    spec = QueueSpec(bindings={"text": {"subscribe": ["t"], "publish": "u"}})
    queue, _ = await store.catalogue.declare("bridged", spec, "test")
    domain = store.open_domain()
    log = Log(domain, LogSpec(max_bytes=0))
    await log.declare()
    known = await log.subscriptions()
    results: list[object] = []
    copies = [(queue, records.encode(b"x"))]
    log.send(Source(INTERNAL_CLIENT), Send(b"SEND t x\n", 1, copies, "test", known.version, results.append))
    await AsyncClient(domain.pipe).publish(queue, [records.encode(b"y")], "test")
    head: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    log.head(Source(INTERNAL_CLIENT), head.set_result)
    assert str(await head).endswith("-2")
    replica, tail = Replica(log), Tail(store.connector, domain.keys, 0)
    arrived = Arrived(b"s", b"i", 1, 1, False, b"SEND t z\n", [(0, *copies[0])])
    assert await replica.accept([arrived, Gap(b"s", b"i", 2, 3)], known) == (1, 2)
    assert results == [None]
    state = await replica.state()
    found = await log.read(state.trimmed)
    assert len(found + await log.read(found[-1].place)) == 3
    await replica.baseline(b"n", state.held)
    await replica.note_seen(b"n", b"i", b"1-2")
    assert (await replica.neighbours(), await replica.seen(b"n", b"i")) == ([b"n"], "1-2")
    assert await replica.lease(b"n", "me", 60_000)
    assert await tail.next() == []
    assert await log.trim() == 2  # the newest stays
    assert (await log.figures())["trimmed_messages"] == "2"
    await tail.close()
    await log.close()


async def test_follower_of_a_replicated_log_has_sufficient_rights(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a follower of a replicated log may write, as it waits for replicas after a write."""
    monkeypatch.setattr(tail_module, "REPLY_TIMEOUT_S", 0.5)
    monkeypatch.setattr(tail_module, "BLOCK_MS", 50)
    administrator = Store(server.url, "admin")
    await administrator.initialise()
    log = Log(administrator.open_domain(), LogSpec())
    server.call("ACL", "SETUSER", "edge", *acl_rules(), f">{PASSWORD}")
    try:
        url = f"redis://edge:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}"
        tail = Tail(Connector(url), log.keys, 1)
        assert await tail.next() == []
        results: list[object] = []
        log.send(Source(INTERNAL_CLIENT), Send(b"SEND t x\n", 1, [], "test", "0", results.append))
        with pytest.raises(StoreUnavailable, match="does not answer"):  # there are no replicas
            await tail.next()
        assert int((await log.figures())["confirmed"]) == 1
        await tail.close()
    finally:
        server.call("ACL", "DELUSER", "edge")
        await log.close()
        await administrator.close()


@pytest.mark.parametrize(
    "command",
    [("CONFIG", "GET", "*"), ("FLUSHALL",), ("KEYS", "*"), ("EVAL", "return 1", "0"), ("GET", "other")],
)
@every_server
async def test_edges_user_has_no_other_rights(server: Server, command: tuple[str, ...]) -> None:
    server.call("ACL", "SETUSER", "edge", *acl_rules(), f">{PASSWORD}")
    try:
        with server.client() as client:
            client.call("AUTH", "edge", PASSWORD)
            with pytest.raises(ResponseError, match="permission"):
                client.call(*command)
    finally:
        server.call("ACL", "DELUSER", "edge")
