"""Test the console with Sentinels and with a Cluster (docs/store.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.store.model.keys import RegistryKeys
from tests.console.live_console import Events, LiveConsole
from tests.live import set_up, until
from tests.servers import PROGRAMS
from tests.topologies import Cluster, Replicated

NUMBER = 40
PROGRAM = next(iter(PROGRAMS))  # the store's tests cover the differences between programs
ANY = {"If-Match": "*"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(PROGRAM, Path(tmp_path_factory.mktemp("cluster"))).start()
    yield cluster
    cluster.end()


@pytest.fixture
async def sharded(cluster: Cluster) -> AsyncIterator[LiveConsole]:
    for node in cluster.nodes:
        node.clear()
    await set_up(cluster)
    async with LiveConsole(cluster.url) as console:
        yield console


async def test_queues_of_all_shards(sharded: LiveConsole, cluster: Cluster) -> None:
    """Check queues of domains on different shards; one shard has the catalogue, jobs and the audit log."""
    names = []
    for number, node in enumerate(cluster.nodes):
        queue = await sharded.declare(f"q{number}", domain=cluster.domain_on(node))
        await sharded.bury(queue, *(b"%d" % each for each in range(10)))
        await sharded.fill(queue, b"ready")
        names.append(queue.name)
    rows = (await sharded.get("/queues")).items
    assert [(row["name"], row["ready"], row["dead"]) for row in rows] == [(name, 1, 10) for name in names]
    assert (await sharded.found("/overview"))["store"]["promises"]["mode"] == "cluster"
    async with sharded.session.get(f"{sharded.base}/api/v1/events") as response:
        assert len((await Events(response).next("queues"))["rows"]) == len(names)
    for name in names:
        assert [letter["reason"] for letter in await sharded.letters(name, "&body=[34]")] == ["poison"] * 2
        job = await sharded.job(await sharded.ask("POST", f"/queues/{name}/dead/redrive", {"all": True}))
        assert (job["state"], job["moved"]) == ("done", 10)
        assert (await sharded.found(f"/queues/{name}"))["ready"] == 11
    reply = await sharded.ask("POST", f"/queues/{names[0]}/dead/redrive", {"all": True, "target": names[1]})
    assert (reply.status, reply.label) == (409, "domain_mismatch")
    assert len((await sharded.get("/jobs")).items) == len(names)
    assert {line["action"] for line in (await sharded.get("/audit")).items} == {
        "dead.redrive",
        "dead.redrive.ended",
    }
    assert (await sharded.ask("DELETE", f"/queues/{names[2]}", headers=ANY)).status == 200
    assert [row["name"] for row in (await sharded.get("/queues")).items] == names[:2]


async def test_slot_migration(sharded: LiveConsole, cluster: Cluster) -> None:
    home, away = cluster.nodes[:2]
    queue = await sharded.declare("orders", domain=cluster.domain_on(home))
    await sharded.bury(queue, *(b"%d" % each for each in range(10)))
    cluster.move(queue.keys[0], away)
    try:
        assert len(await sharded.letters("orders")) == 10
        job = await sharded.job(await sharded.ask("POST", "/queues/orders/dead/redrive", {"all": True}))
        assert (job["state"], job["moved"]) == ("done", 10)
        assert (await sharded.get("/queues")).items[0]["ready"] == 10
    finally:
        cluster.move(queue.keys[0], home)


@pytest.mark.parametrize("own_cluster", [PROGRAM], indirect=True)
async def test_shard_outage(own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an outage does not affect queues of other shards, also when the store's memory is polled again."""
    monkeypatch.setattr("services.console.live.store_state.REFRESH_S", 0.0)
    await set_up(own_cluster)
    home = own_cluster.holder(RegistryKeys().epoch)
    away, other = (node for node in own_cluster.nodes if node is not home)
    async with LiveConsole(own_cluster.url) as console:
        for name, node in (("home", home), ("away", away), ("other", other)):
            queue = await console.declare(name, domain=own_cluster.domain_on(node))
            await console.fill(queue, b"1")
        before = await console.found("/overview")
        assert (before["store"]["alarms"], before["totals"]["ready"]) == ([], 3)
        away.kill9()

        async def rows_with_condition() -> Any:
            rows = (await console.found("/queues"))["items"]
            return rows if any(row["condition"] for row in rows) else None

        rows = await until(rows_with_condition)
        await console.fill(await console.tools.catalogue.find("other"), b"2")
        rows = await until(lambda: _with_two(console))
        assert [row["ready"] for row in rows] == [1, 1, 2]
        assert [bool(row["condition"]) for row in rows] == [True, False, False]
        store = (await console.found("/overview"))["store"]
        assert store["alarms"] == [
            f"memory: server 127.0.0.1:{away.port} does not answer and is not included"
        ]
        assert 0 < store["usedBytes"] < before["store"]["usedBytes"]


async def _with_two(console: LiveConsole) -> Any:
    rows = (await console.found("/queues"))["items"]
    return rows if any(row["ready"] == 2 for row in rows) else None


async def _answers(console: LiveConsole, path: str) -> Any:
    reply = await console.get(path)
    assert reply.status in (200, 503)
    return reply.document if reply.status == 200 else None


@pytest.mark.parametrize("replicated", [PROGRAM], indirect=True)
async def test_failover(replicated: Replicated) -> None:
    """Check that live views report the outage and its end, and a running job completes."""
    await set_up(replicated)
    async with LiveConsole(replicated.url) as console:
        queue = await console.declare("orders", ackLevel="replicated:1")
        await console.bury(queue, *(b"%d" % each for each in range(NUMBER)))
        assert (await console.found("/overview"))["store"]["promises"]["replicas"] == 2
        reply = await console.ask("POST", "/queues/orders/dead/redrive", {"all": True, "rate": 8})
        path = reply.headers["Location"].removeprefix("/api/v1")
        async with console.session.get(f"{console.base}/api/v1/events") as response:
            events = Events(response)
            await events.next("queues")
            old = replicated.primary()
            old.kill9()
            assert (await events.next("trouble"))["label"] == "store_unavailable"
            await until(lambda: replicated.primary() is not old)
            await events.next("overview")

        async def ended() -> Any:
            job = await _answers(console, path)
            return job if job and job["state"] != "running" else None

        job = await until(ended)
        assert (job["state"], job["error"]) == ("done", None)
        found = await until(lambda: _answers(console, "/queues/orders"))
        assert (found["ready"], found["dead"]) == (NUMBER, 0)
        assert (await console.ask("PUT", "/queues/others", {"ackLevel": "replicated:1"})).status == 201
