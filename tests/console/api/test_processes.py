"""Test edges, their connections and subscriptions, rings and the report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.kit.metrics.report_measures import DEATHS, TIME
from services.kit.net.connection_inspector import ConnectionInspector
from services.pubsub.edge import EDGE
from services.store.processes.rpc_protocol import Item
from services.store.report.reports import write_report
from tests.console.live_console import LiveConsole
from tests.live import Live, until
from tests.reports import NOW_MS, document, report
from tests.servers import Server
from tests.stores import NewServer

TEXT = {"listeners": {"text": {"port": 0}, "link": "off"}}


@pytest.fixture
async def edge(server: Server) -> AsyncIterator[Live]:  # type: ignore[type-arg]
    edge = Live(EDGE, server.url, TEXT)
    try:
        await edge.open()
        yield edge
    finally:
        await edge.close()


async def test_link_has_the_id_of_the_other_store(
    console: LiveConsole, server: Server, new_server: NewServer
) -> None:
    """Check that a link shows the id of the other store, without other clients."""
    other = await new_server()
    async with linked(server.url, other.url) as ours:
        clients = [await asyncio.open_connection(*ours.places["text"]) for _ in range(3)]

        async def is_there() -> object:
            found = await console.found("/connections?named=true&limit=1")
            return found["items"]

        (link,) = await until(is_there)
        (event,) = console.log.events("link_up", peer=link["peer"])
        assert link["detail"]["peerName"] == vars(event)["store"]
        assert (link["edge"], link["listener"]) == ("pubsub", "links")

        async def all_of_them() -> bool:
            return len((await console.get("/connections")).items) == 4

        await until(all_of_them)
        named = [each["detail"]["peerName"] for each in (await console.get("/connections")).items]
        assert sorted(name or "" for name in named) == ["", "", "", link["detail"]["peerName"]]
        assert [each["id"] for each in (await console.get("/connections?named=true")).items] == [link["id"]]
        for _, writer in clients:
            writer.close()


@pytest.fixture
def of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new edges behave like older ones, without names of connections."""
    answer = ConnectionInspector.connections

    def connections(inspector: ConnectionInspector, args: Mapping[str, Any]) -> Iterator[Item]:
        for item in answer(inspector, {name: value for name, value in args.items() if name != "named"}):
            yield {name: value for name, value in item.items() if name != "name"}

    monkeypatch.setattr(ConnectionInspector, "connections", connections)


async def test_older_edge_ignores_the_filter_by_name(
    console: LiveConsole,
    of_before: None,
    edge: Live,  # type: ignore[type-arg]
) -> None:
    """Check that the console filters the connections of an older edge, which returns all of them."""
    await _one_edge(console)
    clients = [await asyncio.open_connection(*edge.places["text"]) for _ in range(3)]

    async def all_of_them() -> bool:
        return len((await console.get("/connections")).items) == 3

    await until(all_of_them)
    first = await console.found("/connections?named=true&limit=2")
    assert (first["items"], first["next"] is None) == ([], False)
    rest = await console.found(f"/connections?named=true&limit=2&cursor={first['next']}")
    assert (rest["items"], rest["next"]) == ([], None)
    for _, writer in clients:
        writer.close()


@asynccontextmanager
async def linked(url: str, other: str) -> AsyncIterator[Live]:  # type: ignore[type-arg]
    """Run an edge of each store; the second dials the first."""
    listeners = {"text": {"port": 0}, "link": "off", "links": {"port": 0, "serves": "links"}}
    ours = Live(EDGE, url, {"listeners": listeners})
    try:
        await ours.open()
        host, port = ours.places["links"]
        theirs = Live(EDGE, other, {**TEXT, "neighbours": [f"{host}:{port}"]})
        try:
            await theirs.open()
            yield ours
        finally:
            await theirs.close()
    finally:
        await ours.close()


async def _one_edge(console: LiveConsole) -> dict[str, object]:
    async def first_edge() -> object:
        found = (await console.get("/edges")).items
        return found[0] if found and found[0]["listeners"] else None

    found: dict[str, object] = await until(first_edge)
    return found


async def test_an_edge(console: LiveConsole, edge: Live) -> None:  # type: ignore[type-arg]
    found = await _one_edge(console)
    host, port = edge.places["text"]
    assert found["edge"] == "pubsub"
    assert found["listeners"] == [{"name": "text", "address": f"{host}:{port}"}]
    assert (await console.found("/overview"))["totals"]["edges"] == 1


async def test_its_connections(console: LiveConsole, edge: Live) -> None:  # type: ignore[type-arg]
    await _one_edge(console)
    clients = [await asyncio.open_connection(*edge.places["text"]) for _ in range(5)]
    for number, (_, writer) in enumerate(clients):
        writer.write(b"SUBSCRIBE %d order.*\r\n" % number)

    async def all_of_them() -> bool:
        return len((await console.get("/connections")).items) == 5

    await until(all_of_them)
    seen = [item["peer"] for item in await console.every("/connections?limit=2")]
    assert (await console.found("/connections?limit=2"))["silent"] == []
    names = ["{}:{}".format(*writer.get_extra_info("sockname")) for _, writer in clients]
    assert seen == names
    assert (await console.get("/connections?edge=tmq")).items == []
    (first, *_) = (await console.get("/connections?edge=pubsub")).items
    assert (first["edge"], first["listener"], first["state"]) == ("pubsub", "text", "open")
    closed = await console.ask("DELETE", f"/connections/{first['id']}")
    assert closed.document == {"id": first["id"], "was": "closed"}
    async with asyncio.timeout(30):
        assert not (await clients[0][0].read()).endswith(b"x")
    for _, writer in clients:
        writer.close()

    async def gone() -> bool:
        return (await console.ask("DELETE", f"/connections/{first['id']}")).status == 404

    await until(gone)
    (*_, line) = console.audited(what="connection.close", outcome="done")
    assert line["target"] == first["id"]


async def test_its_subscriptions(console: LiveConsole, edge: Live) -> None:  # type: ignore[type-arg]
    await _one_edge(console)
    _, writer = await asyncio.open_connection(*edge.places["text"])
    for number in range(5):
        writer.write(b"SUBSCRIBE %d order.%d*\r\n" % (number, number))

    async def all_of_them() -> bool:
        return len((await console.get("/subscriptions")).items) == 5

    await until(all_of_them)
    seen = [(item["id"], item["pattern"]) for item in await console.every("/subscriptions?limit=2")]
    assert seen == [(str(number), f"order.{number}*") for number in range(5)]
    writer.close()


async def test_limit_of_concurrent_queries(console: LiveConsole, edge: Live) -> None:  # type: ignore[type-arg]
    """Check that concurrent queries are limited, as each has a connection of its own to the store."""
    await _one_edge(console)
    replies = await asyncio.gather(*(console.get("/connections") for _ in range(40)))
    assert {reply.status for reply in replies} == {200, 429}
    assert {reply.label for reply in replies if reply.status == 429} == {"too_many_questions"}
    assert (await console.get("/connections")).status == 200
    replies = await asyncio.gather(*(console.get("/subscriptions") for _ in range(40)))
    assert {reply.status for reply in replies} == {200, 429}


async def test_limit_of_concurrent_dry_runs(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.bury(queue, *(b"%d" % number for number in range(2000)))
    path, body = "/queues/orders/dead/purge", {"filter": {"body": "nothing"}, "dryRun": True}
    replies = await asyncio.gather(*(console.ask("POST", path, body) for _ in range(40)))
    assert {reply.status for reply in replies} == {200, 429}
    assert (await console.ask("POST", path, body)).status == 200


async def test_unknown_connection(console: LiveConsole) -> None:
    for identifier in ["x", "x@", "@x", "1.1@unknown", "%FF@%FF", "@"]:
        assert (await console.ask("DELETE", f"/connections/{identifier}")).label == "connection_unknown"


async def test_a_ring(console: LiveConsole) -> None:
    def link(name: str) -> dict[str, object]:
        return {"name": name, "address": "10.0.0.9:1234", "since_s": 5.0}

    for name, other in (("a:1", "b:1"), ("b:1", "a:1")):
        node = {"name": name, "leader": "b:1", "is_leader": name == "b:1", "member_count": 2}
        links = {"predecessor": link(other), "successor": link(other), "last_break": None, "away": None}
        await console.tools.ring_nodes.put(7, name, {**node, **links})
    (group,) = (await console.found("/ring"))["groups"]
    assert (group["group"], group["isClosed"], group["leaders"]) == (7, True, ["b:1"])
    assert group["chains"] == [{"nodes": ["a:1", "b:1"], "isClosed": True}]
    first, second = group["nodes"]
    assert (first["name"], first["isLeader"], first["memberCount"]) == ("a:1", False, 2)
    assert (second["successor"]["sinceS"], second["isLeader"], second["isSilent"]) == (5.0, True, False)
    assert second["writtenAt"].endswith("Z")


async def test_a_report(console: LiveConsole) -> None:
    text = json.dumps(document()).encode()
    assert await asyncio.to_thread(write_report, console.url, text, document()["now_ms"])
    assert (await console.found("/report"))["totals"]["queues"] == 2
    newer = json.dumps({**document(), "version": 99}).encode()
    await asyncio.to_thread(write_report, console.url, newer, document()["now_ms"] + 1)
    reply = await console.get("/report")
    assert (reply.status, reply.label) == (409, "report_unknown")


async def test_without_edges(console: LiveConsole) -> None:
    for path in ("/edges", "/connections", "/subscriptions"):
        assert (await console.get(path)).items == []
    assert (await console.found("/ring")) == {"groups": []}
    assert (await console.get("/report")).label == "no_report"


async def test_report_metrics(server: Server) -> None:
    async with LiveConsole(server.url) as before:
        assert (await before.get("/report")).label == "no_report"
        registry = before.metrics.registry
        assert registry.get_sample_value(TIME.name) is None
        assert await asyncio.to_thread(write_report, server.url, report().encode(), NOW_MS)
    async with LiveConsole(server.url) as console:
        registry = console.metrics.registry
        await until(lambda: registry.get_sample_value(TIME.name) == NOW_MS / 1000)
        assert registry.get_sample_value(DEATHS.name, {"reason": "attempts"}) == 9
        reason = {"reason": "attempts", "edge": "console"}
        assert registry.get_sample_value(DEATHS.name, reason) is None  # one metric for all processes
