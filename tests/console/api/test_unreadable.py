"""Test queues whose document this version cannot read (docs/console.md, Quick start)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from services.store.model.keys import RegistryKeys
from tests.console.live_console import LiveConsole
from tests.live import until
from tests.servers import Server

SPEC = {"ackLevel": "memory"}
KEY = RegistryKeys().queues
REPLACED = "/queues/orders?replaceUnreadable=true"


@pytest.fixture
async def newer(server: Server) -> AsyncIterator[LiveConsole]:
    """Yield a console: a newer version changed `orders` with a message and three dead letters, but not `others`."""
    async with LiveConsole(server.url) as console:
        queue = await console.declare("orders")
        await console.bury(queue, b"x", b"y", b"z")
        await console.fill(queue, b"a")
        await console.declare("others")
        kept = json.loads(server.call("HGET", KEY, "orders"))
        kept["spec"] = json.dumps({**json.loads(kept["spec"]), "colour": "blue"})
        server.call("HSET", KEY, "orders", json.dumps(kept))
        yield console


async def test_row_and_alarm(newer: LiveConsole) -> None:
    rows = (await newer.get("/queues")).items
    assert [(row["name"], row["ready"]) for row in rows] == [("orders", 1), ("others", 0)]
    assert "colour" in rows[0]["unreadable"]
    assert rows[0]["condition"] == rows[0]["unreadable"]
    assert rows[1]["unreadable"] is None
    (alarm,) = [text for text in (await newer.found("/overview"))["store"]["alarms"] if "'orders'" in text]
    assert "colour" in alarm
    document = await newer.found("/queues/orders")
    assert (document["ready"], document["spec"], document["unreadable"]) == (
        1,
        {"ackLevel": "fsync"},
        rows[0]["unreadable"],
    )


async def test_replacing_requires_replace_unreadable(newer: LiveConsole, server: Server) -> None:
    seen = await newer.etag("/queues/orders")
    assert (await newer.ask("PUT", "/queues/orders", SPEC)).status == 428
    assert (await newer.ask("PUT", REPLACED, SPEC, headers={"If-Match": '"x"'})).status == 412
    kept = server.call("HGET", KEY, "orders")
    for precondition in (seen, {"If-Match": "*"}):
        reply = await newer.ask("PUT", "/queues/orders", SPEC, headers=precondition)
        assert (reply.status, reply.document["label"]) == (409, "queue_unreadable"), (
            "it told us {} as its spec"
        )
        assert "colour" in reply.document["detail"]
    assert server.call("HGET", KEY, "orders") == kept
    reply = await newer.ask("PUT", REPLACED, SPEC, headers=seen)
    assert (reply.status, reply.document["ready"], reply.document["unreadable"]) == (200, 1, None)
    assert (await newer.ask("PUT", "/queues/orders", SPEC, headers=seen)).status == 412

    assert all(row["unreadable"] is None for row in (await newer.get("/queues")).items)

    async def is_well() -> bool:
        return not any("orders" in text for text in (await newer.found("/overview"))["store"]["alarms"])

    await until(is_well)


async def test_replacing_keeps_the_domain(newer: LiveConsole, server: Server) -> None:
    await newer.declare("far", domain="other")
    kept = json.loads(server.call("HGET", KEY, "far"))
    server.call("HSET", KEY, "far", json.dumps({**kept, "spec": '{"colour": 1}'}))
    path = "/queues/far?replaceUnreadable=true"
    reply = await newer.ask("PUT", path, SPEC, headers={"If-Match": "*"})
    assert (reply.status, reply.label) == (409, "domain_mismatch")
    assert "use its domain" in reply.document["detail"]
    reply = await newer.ask("PUT", path, {**SPEC, "domain": "other"}, headers={"If-Match": "*"})
    assert reply.status == 200


async def test_delete(newer: LiveConsole) -> None:
    assert (await newer.ask("DELETE", "/queues/orders", headers={"If-Match": '"x"'})).status == 412
    reply = await newer.ask("DELETE", "/queues/orders", headers=await newer.etag("/queues/orders"))
    assert reply.document == {"messages": 1}
    assert [row["name"] for row in (await newer.get("/queues")).items] == ["others"]


async def test_messages_and_dead_letters_are_accessible(newer: LiveConsole) -> None:
    assert [each["bodyBase64"] for each in (await newer.get("/queues/orders/messages")).items] == ["YQ=="]
    letters = await newer.letters("orders")
    assert (await newer.found(f"/queues/orders/dead/{letters[0]['id']}"))["bodyBase64"] == "eA=="
    assert (await newer.get("/queues/orders/history")).status == 200
    redrive = {"ids": [letters[0]["id"]]}
    job = await newer.job(await newer.ask("POST", "/queues/orders/dead/redrive", redrive))
    assert (job["state"], job["moved"]) == ("done", 1)
    purge = {"ids": [letters[1]["id"]]}
    other = {"If-Match": '"x"'}
    assert (await newer.ask("POST", "/queues/orders/dead/purge", purge, headers=other)).status == 412
    seen = await newer.etag("/queues/orders")
    job = await newer.job(await newer.ask("POST", "/queues/orders/dead/purge", purge, headers=seen))
    assert (job["state"], job["moved"]) == ("done", 1)
    assert [letter["id"] for letter in await newer.letters("orders")] == [letters[2]["id"]]


async def test_errors_contain_advice(newer: LiveConsole) -> None:
    reply = await newer.ask("POST", "/queues/orders/messages", {"body": "b"})
    assert (reply.status, reply.label) == (409, "queue_unreadable")
    assert "colour: Extra inputs" in reply.document["detail"]
    assert "replace or delete the queue here" in reply.document["detail"]
    redrive = {"all": True, "target": "orders"}
    reply = await newer.ask("POST", "/queues/others/dead/redrive", redrive)
    assert (reply.status, reply.label) == (409, "queue_unreadable")


SOUND = {"qid": "q77", "domain": "main", "owner": "cli", "spec": "{}"}


async def test_queue_without_a_readable_id(newer: LiveConsole, server: Server) -> None:
    """Check that a queue without a readable ID raises an alarm and does not affect others."""
    for number, document in enumerate(
        [
            "{",
            "[]",
            "[" * 100_000,
            json.dumps({**SOUND, "domain": "a b"}),
            json.dumps({**SOUND, "domain": ""}),
            json.dumps({**SOUND, "domain": "\ud800"}),
            json.dumps({**SOUND, "domain": 5}),
            json.dumps({**SOUND, "qid": "q1}:x"}),
            json.dumps({**SOUND, "spec": {}}),
            json.dumps({**SOUND, "owner": None}),
        ]
    ):
        name = f"broken{number}"
        server.call("HSET", KEY, name, document)

        async def has_alarm(name: str = name) -> bool:
            return any(repr(name) in text for text in (await newer.found("/overview"))["store"]["alarms"])

        await until(has_alarm)
        assert [row["name"] for row in (await newer.get("/queues")).items] == ["orders", "others"]
        for path in ("", "/messages", "/dead", "/dead/1-1", "/history"):
            reply = await newer.get(f"/queues/{name}{path}")
            assert (reply.status, reply.label) == (409, "queue_unreadable")
            assert "delete its field in the store's hash ps:{registry}:queues" in reply.document["detail"]
        for method, path in (("PUT", ""), ("DELETE", ""), ("POST", "/messages")):
            body = {"PUT": SPEC, "POST": {"body": "b"}}.get(method)
            headers = {} if method == "POST" else {"If-Match": "*"}
            reply = await newer.ask(method, f"/queues/{name}{path}", body, headers=headers)
            assert (reply.status, reply.label) == (409, "queue_unreadable")


async def test_queue_in_the_domain_of_the_catalogue(newer: LiveConsole, server: Server) -> None:
    """Check a queue in the catalogue's domain, which older versions could create."""
    kept = json.loads(server.call("HGET", KEY, "orders"))
    server.call("HSET", KEY, "orders", json.dumps({**kept, "domain": "registry"}))
    assert [row["name"] for row in (await newer.get("/queues")).items] == ["others"]  # no queue has its ID
    reply = await newer.get("/queues/orders")
    assert (reply.status, reply.label) == (404, "queue_unknown")


async def test_damaged_queue_does_not_affect_others(server: Server) -> None:
    """Check that a damaged queue affects neither list nor overview, whether or not it was read before."""
    async with LiveConsole(server.url) as console:
        queues = [await console.declare(name) for name in ("good", "late", "spoilt")]
        await console.fill(queues[0], b"a")
        server.call("SET", queues[2].keys[6], "damage")

        async def conditions() -> dict[str, str]:
            return {row["name"]: row["condition"] for row in (await console.get("/queues")).items}

        rows = await conditions()
        assert (rows["good"], rows["late"]) == ("", "")
        assert "WRONGTYPE" in rows["spoilt"]
        totals = (await console.found("/overview"))["totals"]
        assert (totals["queues"], totals["ready"]) == (3, 1)
        server.call("SET", queues[1].keys[6], "damage")

        async def is_seen() -> bool:
            return "WRONGTYPE" in (await conditions())["late"]

        await until(is_seen)
        server.call("DEL", queues[1].keys[6], queues[2].keys[6])

        async def is_well() -> bool:
            return set((await conditions()).values()) == {""}

        await until(is_well)
