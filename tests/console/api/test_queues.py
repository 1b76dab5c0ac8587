"""Test queues over HTTP."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from services.store import QueueSpec
from tests.console.live_console import LiveConsole
from tests.live import until

SPEC = {"ackLevel": "memory", "maxLength": 5, "visibilityTimeout": "10s"}


async def test_create_read_change_delete(console: LiveConsole) -> None:
    made = await console.ask("PUT", "/queues/orders", SPEC)
    assert made.status == 201
    assert made.headers["Location"] == "/api/v1/queues/orders"
    assert made.document["owner"] == "console"
    assert made.document["spec"] == SPEC
    shown = await console.get("/queues/orders")
    assert shown.headers["ETag"] == made.headers["ETag"]
    changed = await console.ask(
        "PUT", "/queues/orders", {**SPEC, "paused": True}, headers={"If-Match": made.headers["ETag"]}
    )
    assert changed.status == 200
    assert changed.headers["ETag"] != made.headers["ETag"]
    assert (await console.found("/queues"))["items"][0]["paused"] is True
    gone = await console.ask("DELETE", "/queues/orders", headers={"If-Match": changed.headers["ETag"]})
    assert gone.document == {"messages": 0}
    assert (await console.get("/queues/orders")).label == "queue_unknown"
    assert (await console.found("/queues"))["items"] == []


async def test_internal_queue_is_protected(console: LiveConsole) -> None:
    refused = await console.ask("PUT", "/queues/ring%2F1%2Fa:8085", SPEC)
    assert (refused.status, refused.label) == (403, "reserved_name")
    queue, _ = await console.tools.catalogue.declare(
        "ring/1/a:8085", QueueSpec(ack_level="memory"), "edge:ring", internal=True
    )
    etag = await console.etag("/queues/ring%2F1%2Fa:8085")
    changed = await console.ask("PUT", "/queues/ring%2F1%2Fa:8085", SPEC, headers=etag)
    assert (changed.status, changed.label) == (403, "reserved_name")
    await console.tools.get_domain(queue.domain).claims.own(queue, "its node", 60_000)
    for method, path, body in (
        ("DELETE", "", None),
        ("POST", "/messages/purge", {"dryRun": True}),
        ("POST", "/messages/purge", {}),
    ):
        kept = await console.ask(method, f"/queues/ring%2F1%2Fa:8085{path}", body, headers=etag)
        assert (kept.status, kept.label) == (403, "reserved_name"), path


async def test_messages_do_not_change_the_etag(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    before = await console.etag("/queues/orders")
    await console.fill(queue, b"one")
    assert await console.etag("/queues/orders") == before
    assert (await console.found("/queues/orders"))["ready"] == 1


class TestConditions:
    """Tests of preconditions (RFC 9110, 13.1)."""

    async def test_if_match_is_required_and_checked(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        assert (await console.ask("PUT", "/queues/orders", SPEC)).status == 428
        assert (await console.ask("DELETE", "/queues/orders")).label == "precondition_required"
        old = await console.etag("/queues/orders")
        assert (await console.ask("PUT", "/queues/orders", SPEC, headers=old)).status == 200
        for method, body in (("PUT", SPEC), ("DELETE", None)):
            reply = await console.ask(method, "/queues/orders", body, headers=old)
            assert (reply.status, reply.label) == (412, "precondition_failed")
            assert reply.headers["ETag"] == (await console.etag("/queues/orders"))["If-Match"]
        old = await console.etag("/queues/orders")
        await console.tools.catalogue.delete(queue)
        await console.declare("orders")  # another one
        assert (await console.ask("DELETE", "/queues/orders", headers=old)).status == 412

    async def test_lists_of_tags_and_weak_tags(self, console: LiveConsole) -> None:
        replace = {"If-Match": "*"}
        assert (await console.ask("PUT", "/queues/orders", SPEC, headers=replace)).status == 412
        await console.declare("orders")
        assert (await console.ask("PUT", "/queues/orders", SPEC, headers=replace)).status == 200
        tag = (await console.etag("/queues/orders"))["If-Match"]
        for given in (f'"other", {tag}', f"W/{tag}"):
            assert (
                await console.ask("PUT", "/queues/orders", SPEC, headers={"If-Match": given})
            ).status == 200
        weak = {"If-Match": f'W/"{"0" * 32}"'}
        assert (await console.ask("DELETE", "/queues/orders", headers=weak)).status == 412
        for none in ("abc", '"', "", ",", '"a" "b"'):
            reply = await console.ask("DELETE", "/queues/orders", headers={"If-Match": none})
            assert reply.status == 400, none

    async def test_if_none_match(self, console: LiveConsole) -> None:
        for tag, status in (("*", 201), ("*", 412), ('"a"', 400)):
            headers = {"If-None-Match": tag}
            assert (await console.ask("PUT", "/queues/orders", SPEC, headers=headers)).status == status

    async def test_only_one_of_concurrent_requests_creates(self, console: LiveConsole) -> None:
        new = {"If-None-Match": "*"}
        asked = [console.ask("PUT", "/queues/orders", SPEC, headers=new) for _ in range(8)]
        found = sorted(reply.status for reply in await asyncio.gather(*asked))
        assert found == [201, *[412] * 7]

    async def test_only_one_of_concurrent_requests_replaces(self, console: LiveConsole) -> None:
        await console.declare("orders")
        seen = await console.etag("/queues/orders")
        asked = [
            console.ask("PUT", "/queues/orders", {**SPEC, "maxLength": number}, headers=seen)
            for number in range(8)
        ]
        found = sorted(reply.status for reply in await asyncio.gather(*asked))
        assert found == [200, *[412] * 7]


class TestRefusals:
    async def test_queue_not_empty(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        await console.fill(queue, b"one")
        reply = await console.ask("DELETE", "/queues/orders?ifEmpty=true", headers={"If-Match": "*"})
        assert (reply.status, reply.label) == (409, "queue_not_empty")
        reply = await console.ask("DELETE", "/queues/orders", headers={"If-Match": "*"})
        assert reply.document == {"messages": 1}

    async def test_invalid_documents(self, console: LiveConsole) -> None:
        for spec, at in (
            ({"maxLength": -1}, "maxLength"),
            ({"nonsense": 1}, "nonsense"),
            ({"ackLevel": "never"}, "ackLevel"),
            ({"visibilityTimeout": 30}, "visibilityTimeout"),
            ({"visibilityTimeout": "0s"}, "visibilityTimeout"),
            ({"bindings": {"text": {"subscribe": "x"}}}, "bindings.text.subscribe"),
        ):
            reply = await console.ask("PUT", "/queues/orders", spec)
            assert (reply.status, reply.label) == (422, "invalid")
            assert [fault["at"] for fault in reply.document["errors"]] == [at]
        reply = await console.ask("PUT", "/queues/a%0Ab", SPEC)
        assert (reply.status, "no control characters" in reply.document["detail"]) == (400, True)
        await console.declare("a\nb")  # as a client may
        etag = await console.etag("/queues/a%0Ab")
        assert (await console.ask("PUT", "/queues/a%0Ab", SPEC, headers=etag)).status == 200

    async def test_refusals_of_the_store_are_conflicts(self, console: LiveConsole) -> None:
        reply = await console.ask("PUT", "/queues/orders", {"ackLevel": "replicated:3"})
        assert (reply.status, reply.label) == (409, "ack_level_refused")
        number = {"bindings": {"rqpMca": {"queueId": 7}}, "ackLevel": "memory"}
        await console.ask("PUT", "/queues/one", number)
        reply = await console.ask("PUT", "/queues/two", number)
        assert (reply.status, reply.label) == (409, "number_taken")
        reply = await console.ask(
            "PUT", "/queues/one", {"domain": "other", "ackLevel": "memory"}, headers={"If-Match": "*"}
        )
        assert (reply.status, reply.label) == (409, "domain_mismatch")

    async def test_name_too_long(self, console: LiveConsole) -> None:
        assert (await console.ask("PUT", f"/queues/{'x' * 256}", SPEC)).status == 400
        assert (await console.get(f"/queues/{'x' * 256}")).status == 404


@pytest.mark.parametrize(
    "name", ["a/b", "a b", "{x}", "%", "..", "grün", "a?b#c", "\u2028", "\udcff\udcfe", "."]
)
async def test_any_name(console: LiveConsole, name: str) -> None:
    written = quote(name.encode("utf-8", "surrogateescape"), safe="").replace(".", "%2E")
    assert (await console.ask("PUT", f"/queues/{written}", SPEC)).status == 201
    assert (await console.found(f"/queues/{written}"))["name"] == name
    assert [row["name"] for row in (await console.get("/queues")).items] == [name]
    for other in ("%21", "%F4%8F%BF%BF"):  # the first and the last name in the order of names
        assert (await console.ask("PUT", f"/queues/{other}", SPEC)).status == 201
    seen = [row["name"] for row in await console.every("/queues?limit=1")]
    assert seen == ["!", name, "\U0010ffff"]


async def test_pages_and_prefix(console: LiveConsole) -> None:
    for number in range(5):
        await console.declare(f"a{number}")
        await console.declare(f"b{number}")
    pages = [[row["name"] for row in page] for page in await console.pages("/queues?limit=2&name=b")]
    assert pages[:3] == [["b0", "b1"], ["b2", "b3"], ["b4"]]


async def test_protocols(console: LiveConsole) -> None:
    spec = {
        "ackLevel": "memory",
        "bindings": {
            "rqpMca": {"queueId": 7},
            "rqpCast": {"key": 8},
            "text": {"subscribe": ["order.*"], "publish": "orders"},
            "ring": {"inbox": 3},
        },
    }
    await console.ask("PUT", "/queues/orders", spec)
    assert (await console.found("/queues/orders"))["protocols"] == {
        "tmq": {"name": "orders"},
        "ring": {"name": "orders", "inbox": 3, "outbox": None},
        "rqpMca": {"queueId": 7},
        "rqpCast": {"key": 8},
        "text": {"subscribe": ["order.*"], "publish": "orders"},
    }


async def test_rates_and_oldest_age(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.fill(queue, b"one", b"two")

    async def flows() -> bool:
        await console.fill(queue, b"more")
        row = (await console.get("/queues")).items[0]
        return bool(row["rates"]["in"] and row["oldestAgeMs"] > 0)

    await until(flows)
    overview = await console.found("/overview")
    assert overview["totals"]["queues"] == 1
    assert overview["totals"]["ready"] >= 2
    assert overview["store"]["server"] == "valkey"
    assert overview["store"]["usedBytes"] > 0


async def test_reservations(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.declare("others")
    assert (await console.get("/reservations")).items == []
    await console.tools.open_domain().pipe.ready()
    assert await console.tools.get_domain("main").claims.reserve(queue, "mca 10.0.0.7", 60_000)

    async def seen() -> bool:
        found = (await console.get("/reservations")).items
        return [one["reservedBy"] for one in found] == ["mca 10.0.0.7"]

    await until(seen)
    assert (await console.found("/queues/orders"))["reservedForMs"] > 0


async def test_prefix_that_is_not_utf8(console: LiveConsole) -> None:
    await console.declare("\udcffa")
    await console.declare("\u00e9 b")
    assert [row["name"] for row in (await console.get("/queues?name=%FF")).items] == ["\udcffa"]
    assert [row["name"] for row in (await console.get("/queues?name=%C3%A9+b")).items] == ["\u00e9 b"]
    assert (await console.get("/queues?name=%C3")).items == []
