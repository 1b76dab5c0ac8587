"""A Cluster: a domain is one shard, and follows its slot when that moves (docs/store.md)."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from services.store import CommitPart, Outcome, PipeSettings, Queue
from services.store.catalogue.audit import AuditEntry
from services.store.catalogue.bulk_stats import NAMED
from services.store.model.errors import AckLevelRefused, DomainMismatch
from services.store.model.keys import RegistryKeys
from services.store.model.requests import Pulled, Settlement
from services.store.pipeline.domain import Timing
from services.store.redis.memory import memory_of
from services.store.report.reports import read_report, write_report
from tests.reports import report
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered, until
from tests.store.member import member
from tests.store.requesting import Node, request_id
from tests.store.traffic import Traffic
from tests.stores import every_server
from tests.topologies import Cluster

PATIENT = PipeSettings(patience_s=15.0)
HASTY = PipeSettings(patience_s=0.2, reply_timeout_s=0.3)


@pytest.fixture(scope="module")
def running(server_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(server_program, tmp_path_factory.mktemp("cluster")).start()
    yield cluster
    cluster.end()


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    for node in running.nodes:
        node.clear()
    return running


@pytest.mark.parametrize("endpoint", ["hostname", "unknown-endpoint"])
async def test_nodes_without_a_host_are_reached(cluster: Cluster, endpoint: str) -> None:
    """Check hosts given by CLUSTER SLOTS as '?' (no hostname) and as null (the asked host)."""
    with ExitStack() as stack:
        for node in cluster.nodes:
            stack.enter_context(node.configured(cluster_preferred_endpoint_type=endpoint))
        (_, _, (reply, *_), *_), *_ = cluster.nodes[0].call("CLUSTER", "SLOTS")
        assert reply == {"hostname": b"?", "unknown-endpoint": None}[endpoint]
        async with Desk(cluster.url) as desk:
            for node in cluster.nodes:
                name = cluster.domain_on(node)
                queue = await desk.queue(f"of {name}", domain=name, ack_level="memory")
                async with desk.another(domain=name) as own:
                    await own.put(queue, b"x")
                    assert await own.drain(queue) == [b"x"]


async def test_domains_live_on_different_shards(cluster: Cluster) -> None:
    domains = [cluster.domain_on(node) for node in cluster.nodes]
    async with Desk(cluster.url) as desk:
        queues = []
        for name in domains:
            with pytest.raises(AckLevelRefused, match="fsync guarantees nothing here"):
                await desk.queue(f"of {name}", domain=name, ack_level="fsync")
            with pytest.raises(AckLevelRefused, match="this store has 0 now"):
                await desk.queue(f"of {name}", domain=name, ack_level="replicated:1")
            queues.append(await desk.queue(f"of {name}", domain=name, ack_level="memory"))
        for node, name, queue in zip(cluster.nodes, domains, queues, strict=True):
            async with desk.another(domain=name) as own:
                await own.put(queue, *numbered(100))
                got = await own.take(queue, 60)
                await own.release(got[:1])
                await own.settle(got[1:])
                assert (await own.stats(queue))["acked"] == 28
                assert node.call("EXISTS", queue.keys[0]) == 1
        assert sorted([q.name async for q in desk.store.listing.queues()]) == sorted(q.name for q in queues)


async def test_report_is_written_to_the_registrys_shard(cluster: Cluster) -> None:
    """Check that a report written without an event loop, from any node, is read by a store."""
    key = RegistryKeys().report
    async with Desk(cluster.url) as desk:
        written = report()
        assert await asyncio.to_thread(write_report, cluster.url, written.encode(), written.now_ms)
        assert await read_report(desk.store.registry) == written
    having = [node for node in cluster.nodes if key.encode() in node.call("KEYS", "*")]
    assert len(having) == 1


async def test_processes_on_all_nodes_are_asked(cluster: Cluster) -> None:
    """Check that the directory follows the registry's slot, and that channels reach every node."""
    keys = RegistryKeys()
    home = cluster.holder(keys.epoch)
    away = next(node for node in cluster.nodes if node is not home)
    async with Desk(cluster.url) as desk, member(cluster.url, "tmq"):
        for holder in (home, away, home):
            if cluster.holder(keys.epoch) is not holder:
                cluster.move(keys.epoch, holder)
            async with member(cluster.url, "rqp"):
                found = await desk.store.processes.inquire("numbers", {"count": 1}, 30.0)
                assert (sorted(answer.edge for answer in found.answers), found.silent) == (["rqp", "tmq"], [])
        await desk.store.audit.append(AuditEntry("eve", "admin", "", "delete", "orders", "done"))
        assert len((await desk.store.audit.page()).lines) == 1


async def test_statistics_span_all_shards(cluster: Cluster) -> None:
    async with Desk(cluster.url) as desk:
        queues = []
        for node in cluster.nodes:
            name = cluster.domain_on(node)
            queues.append(await desk.queue(f"of {name}", domain=name, ack_level="memory"))
            async with desk.another(domain=name) as own:
                await own.put(queues[-1], b"x")
        stats = (await desk.store.listing.stats_of(queues)).stats
        assert [figures["ready"] for figures in stats.values()] == [1, 1, 1]


async def test_unavailable_shard_hides_no_other(
    own_cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that other shards stay visible, and that one line is logged, once, for all queues of the shard."""
    home = own_cluster.holder(RegistryKeys().epoch)
    away, other = [node for node in own_cluster.nodes if node is not home]
    async with Desk(own_cluster.url) as desk:

        async def made(name: str, node: Server) -> Queue:
            return await desk.queue(name, domain=own_cluster.domain_on(node), ack_level="memory")

        gone = [await made(f"gone{number:02}", away) for number in range(NAMED + 2)]
        queues = [await made("here", home), *gone, await made("there", other)]
        away.kill9()
        for _ in range(2):
            looked = await desk.store.listing.stats_of(queues)
            assert sorted(looked.stats) == ["here", "there"]
            assert list(looked.errors) == [queue.name for queue in gone]
    (line,) = [record for record in caplog.records if getattr(record, "action", "") == "queue_unread"]
    assert vars(line)["queues"] == [queue.name for queue in gone[:NAMED]]
    assert vars(line)["reason"] == "store_unavailable"
    assert f"'gone{NAMED - 1:02}' and 2 more: " in line.getMessage()


async def test_unavailable_shard_affects_no_other(
    own_cluster: Cluster,
) -> None:
    home = own_cluster.holder(RegistryKeys().epoch)
    away = next(node for node in own_cluster.nodes if node is not home)
    own, others = own_cluster.domain_on(home), own_cluster.domain_on(away)
    async with Desk(own_cluster.url) as desk:
        await desk.queue("a", domain=others, ack_level="memory")
        queue = await desk.queue("b", domain=own, ack_level="memory", message_ttl="50ms")
        async with desk.another(domain=own, timing=Timing(upkeep_s=0.05), pipe=HASTY) as edge:
            await edge.put(queue, *numbered(3))
            await edge.store.open_domain(others).pipe.ready()
            away.kill9()
            await until(lambda: edge.store.fault_of(others))
            edge.store.start_serving(own)

            async def expired() -> bool:
                return (await edge.stats(queue))["expired"] == 3

            await until(expired)
            assert edge.store.fault_of(own) is None


async def test_fullest_server_counts(cluster: Cluster) -> None:
    """Check that the fullest server counts, as it refuses first."""
    limits = (256 << 20, 64 << 20, 128 << 20)
    async with Desk(cluster.url) as desk:
        with ExitStack() as stack:
            for node, limit in zip(cluster.nodes, limits, strict=True):
                stack.enter_context(node.configured(maxmemory=str(limit)))
            found = await memory_of(desk.store.connector)
            used = int(cluster.nodes[1].info("memory")["used_memory"])
            assert found.limit == sum(limits)
            assert found.fullest == pytest.approx(used / limits[1], rel=0.2)
            with cluster.nodes[0].configured(maxmemory="0"):
                partly = await memory_of(desk.store.connector)
            assert partly.limit is None
            assert partly.fullest == pytest.approx(found.fullest, rel=0.2)


async def test_commit_across_domains_is_refused(cluster: Cluster) -> None:
    """Check that a commit across domains is refused (tmq.md 5.5)."""
    here, there = (cluster.domain_on(node) for node in cluster.nodes[:2])
    async with Desk(cluster.url) as desk:
        one = await desk.queue("one", domain=here, ack_level="memory")
        two = await desk.queue("two", domain=there, ack_level="memory")
        async with desk.another(domain=here) as own, desk.another(domain=there) as other:
            with pytest.raises(DomainMismatch):
                await own.commit(
                    "t1", CommitPart(one, [], encode(b"x"), "t"), CommitPart(two, [], encode(b"y"), "t")
                )
            assert (await own.count(one), await other.count(two)) == (0, 0)


async def test_requests_and_ring_nodes_use_one_shard(cluster: Cluster) -> None:
    """Check that requests and ring nodes use one shard, also for a lease that another process settles (ring.md 5.4)."""
    async with Desk(cluster.url) as home:
        for number, node in enumerate(cluster.nodes):
            name = cluster.domain_on(node)
            queue = await home.queue(f"of {name}", domain=name, ack_level="memory")
            async with home.another(domain=name) as one, home.another(domain=name) as two:
                await one.put(queue, b"x")
                pushed, pulled = request_id(2 * number + 1), request_id(2 * number + 2)
                assert await Node(one).push(pushed, queue, b"y") is Outcome.STORED
                assert await Node(two).push(pushed, queue, b"y") is Outcome.AGAIN
                assert isinstance(await Node(one).pull(pulled, queue), Pulled)
                assert isinstance(await Node(two).pull(pulled, queue), Pulled)
                assert await Node(two).settle(pulled, queue) is Settlement.SETTLED
                assert node.call("EXISTS", one.domain.keys.request(pulled)) == 1
                assert await one.drain(queue) == [b"y"]
        await home.store.ring_nodes.put(7, "10.0.0.1:8085", {"successor": "a"})
        (found,) = await home.store.ring_nodes.all()
        assert found.document == {"successor": "a"}
        assert await home.store.registry.remember_reply(request_id(1), "done", 60_000) == "done"
        assert await home.store.registry.reply_of(request_id(1)) == "done"


@every_server
async def test_domain_follows_its_slot(cluster: Cluster) -> None:
    """Check that a domain follows its slot by MOVED during traffic, without loss or duplicates."""
    source, target = cluster.nodes[0], cluster.nodes[1]
    domain = cluster.domain_on(source)
    async with Desk(cluster.url) as home:
        queue = await home.queue(domain=domain, ack_level="memory")
        desk = await home.another(domain=domain, pipe=PATIENT).__aenter__()  # home closes it
        traffic = Traffic(desk, queue)
        traffic.start()
        for destination in (target, source):
            goal = len(traffic.stored) + 200
            await until(lambda goal=goal: len(traffic.stored) > goal)
            cluster.move(desk.domain.keys.epoch, destination)
            goal = len(traffic.stored) + 200
            await until(lambda goal=goal: len(traffic.stored) > goal)
            assert destination.call("EXISTS", traffic.queue.keys[0]) == 1
        await traffic.stop()
        assert traffic.refused == traffic.unknown == set()
        await traffic.check()


async def test_catalogue_follows_its_slot(cluster: Cluster) -> None:
    keys = RegistryKeys()
    home = cluster.holder(keys.epoch)
    away = next(node for node in cluster.nodes if node is not home)
    async with Desk(cluster.url) as desk:
        queue = await desk.queue(ack_level="memory")
        cluster.move(keys.epoch, away)
        assert (await desk.store.catalogue.find("orders")).qid == queue.qid
        await desk.queue("more", ack_level="memory")
        cluster.move(keys.epoch, home)
        assert sorted([q.name async for q in desk.store.listing.queues()]) == ["more", "orders"]


async def test_hung_node_does_not_block_others(cluster: Cluster) -> None:
    """Check that a hung node, even the one asked for the slots, does not block others."""
    registry = cluster.holder(RegistryKeys().epoch)
    node = next(n for n in cluster.nodes if n is not registry)
    hung = next(n for n in cluster.nodes if n not in (registry, node))
    domain = cluster.domain_on(node)
    async with Desk(cluster.url) as desk:
        queue = await desk.queue(domain=domain, ack_level="memory")
        ports = [hung.port, registry.port, node.port]
        url = "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)
        hung.stop()
        try:
            async with Desk(url, domain=domain, initialise=False) as other:
                await other.put(queue, b"x")
                node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                await other.put(queue, b"y")
                assert await other.drain(queue) == [b"x", b"y"]
        finally:
            hung.cont()
