"""A queue whose document this version cannot read (docs/console.md, Use it)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from services.store.keys import RegistryKeys
from tests.console.live_console import LiveConsole
from tests.live import until
from tests.servers import Server

SPEC = {"ackLevel": "memory"}
KEY = RegistryKeys().queues
REPLACED = "/queues/orders?replaceUnreadable=true"


@pytest.fixture
async def newer(server: Server) -> AsyncIterator[LiveConsole]:
    """`orders`, with a message, has been changed by a newer version; `others` has not."""
    async with LiveConsole(server.url) as console:
        await console.fill(await console.declare("orders"), b"a")
        await console.declare("others")
        kept = json.loads(server.call("HGET", KEY, "orders"))
        kept["spec"] = json.dumps({**json.loads(kept["spec"]), "colour": "blue"})
        server.call("HSET", KEY, "orders", json.dumps(kept))
        yield console


async def test_it_is_seen(newer: LiveConsole) -> None:
    rows = (await newer.get("/queues")).items
    assert [(row["name"], row["ready"]) for row in rows] == [("orders", 1), ("others", 0)]
    assert "colour" in rows[0]["unreadable"]
    assert rows[0]["condition"] == rows[0]["unreadable"]
    assert rows[1]["unreadable"] is None
    (alarm,) = [text for text in (await newer.found("/overview"))["store"]["alarms"] if "'orders'" in text]
    assert "colour" in alarm
    told = await newer.found("/queues/orders")
    assert (told["ready"], told["spec"], told["unreadable"]) == (1, {}, rows[0]["unreadable"])


async def test_it_is_replaced_by_those_who_say_so(newer: LiveConsole, server: Server) -> None:
    seen = await newer.etag("/queues/orders")
    assert (await newer.ask("PUT", "/queues/orders", SPEC)).status == 428
    assert (await newer.ask("PUT", REPLACED, SPEC, headers={"If-Match": '"x"'})).status == 412
    kept = server.call("HGET", KEY, "orders")
    for precondition in (seen, {"If-Match": "*"}):
        reply = await newer.ask("PUT", "/queues/orders", SPEC, headers=precondition)
        assert (reply.status, reply.document["label"]) == (409, "document_unreadable"), (
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


async def test_it_can_be_deleted(newer: LiveConsole) -> None:
    assert (await newer.ask("DELETE", "/queues/orders", headers={"If-Match": '"x"'})).status == 412
    reply = await newer.ask("DELETE", "/queues/orders", headers=await newer.etag("/queues/orders"))
    assert reply.document == {"messages": 1}
    assert [row["name"] for row in (await newer.get("/queues")).items] == ["others"]


async def test_one_of_which_not_even_the_id_is_known(newer: LiveConsole, server: Server) -> None:
    """It hides no other, and is an alarm."""
    server.call("HSET", KEY, "broken", "{")

    async def is_told() -> bool:
        return any("'broken'" in text for text in (await newer.found("/overview"))["store"]["alarms"])

    await until(is_told)
    assert [row["name"] for row in (await newer.get("/queues")).items] == ["orders", "others"]
