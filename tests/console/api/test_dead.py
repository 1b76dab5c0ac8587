"""Test reading dead letters over HTTP."""

from __future__ import annotations

import base64

import pytest

from services.console.contract.cursor import encode_cursor
from tests.console.live_console import LiveConsole

DEAD = "/queues/orders/dead"


async def test_fields_of_a_dead_letter(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    (identifier,) = await console.bury(queue, b"<script>alert(1)</script>")
    letter = await console.found(f"{DEAD}/{identifier}")
    assert base64.b64decode(letter["bodyBase64"]) == b"<script>alert(1)</script>"
    assert (letter["reason"], letter["error"], letter["acquired"]) == ("poison", "no good", 1)
    assert letter["enqueuedAt"] <= letter["firstAt"] <= letter["diedAt"]
    assert not letter["truncated"]
    (listed,) = await console.letters("orders")
    assert listed == letter


async def test_body_is_a_download(console: LiveConsole) -> None:
    queue = await console.declare('a"b')
    (identifier,) = await console.bury(queue, b"<script>alert(1)</script>")
    reply = await console.get(f"/queues/a%22b/dead/{identifier}/body")
    assert reply.body == b"<script>alert(1)</script>"
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''a%22b-{identifier}.bin"
    assert "sandbox" in reply.headers["Content-Security-Policy"]


async def test_large_body(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    body = bytes(range(256)) * (1 << 15)  # 8 MiB
    (identifier,) = await console.bury(queue, body)
    letter = await console.found(f"{DEAD}/{identifier}")
    assert base64.b64decode(letter["bodyBase64"]) == body
    assert (await console.get(f"{DEAD}/{identifier}/body")).body == body
    (listed,) = await console.letters("orders", "&octets=3")
    assert (listed["bytes"], base64.b64decode(listed["bodyBase64"])) == (len(body), body[:3])


async def test_unknown_dead_letter(console: LiveConsole) -> None:
    await console.declare("orders")
    for identifier in ["1-1", "nonsense", "0-0", "%2D", "99999999999999999999-99999999999999999999"]:
        for path in (f"{DEAD}/{identifier}", f"{DEAD}/{identifier}/body"):
            assert (await console.get(path)).label == "letter_unknown"


class TestFilters:
    async def test_each(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        await console.bury(queue, b"apple", b"pear")
        await console.bury(queue, b"plum", reason="rejected")

        async def bodies(query: str) -> list[bytes]:
            return [
                base64.b64decode(letter["bodyBase64"]) for letter in await console.letters("orders", query)
            ]

        assert await bodies("") == [b"apple", b"pear", b"plum"]
        assert await bodies("&reason=rejected") == [b"plum"]
        assert await bodies("&reason=rejected&reason=poison") == [b"apple", b"pear", b"plum"]
        assert await bodies("&reason=nothing") == []
        assert await bodies("&origin=tes") == [b"apple", b"pear", b"plum"]
        assert await bodies("&origin=tmq") == []
        assert await bodies("&olderThan=0s") == [b"apple", b"pear", b"plum"]
        assert await bodies("&olderThan=1h") == []
        assert await bodies("&body=%5Ep.%2Bm") == [b"plum"]  # ^p.+m
        assert await bodies("&body=e&reason=poison&octets=1") == [b"a", b"p"]

    async def test_invalid_pattern(self, console: LiveConsole) -> None:
        await console.declare("orders")
        for pattern in ["(", "(?=x)", "(x)%5C1", "x" * 1001, "((a{1,100}){1,100}){1,100}"]:
            reply = await console.get(f"{DEAD}?body={pattern}")
            assert reply.status == 400

    async def test_pattern_with_exponential_backtracking(self, console: LiveConsole) -> None:
        """Check that a pattern ends that the standard library's `re` would never finish."""
        queue = await console.declare("orders")
        await console.bury(queue, b"a" * 100_000 + b"b")
        assert await console.letters("orders", "&body=(a%2B)%2B%24") == []

    async def test_invalid_queries(self, console: LiveConsole) -> None:
        await console.declare("orders")
        for query in [
            "olderThan=5",
            "olderThan=x",
            "octets=-1",
            "limit=0",
            "limit=1001",
            "limit=x",
            "nonsense=1",
            "limit=1&limit=2",
        ]:
            reply = await console.get(f"{DEAD}?{query}")
            assert (reply.status, reply.label) == (400, "bad_request")
            assert reply.document["errors"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("attributes", b"\xc1"), ("attributes", b"\x01\x02"), ("died", b"x"), ("reason", b"\xff")],
)
async def test_damaged_dead_letter_is_named(console: LiveConsole, field: str, value: bytes) -> None:
    """Check that the error names the damaged dead letter, and not the cursor."""
    queue = await console.declare("orders")
    (identifier,) = await console.bury(queue, b"1")
    link, key = console.tools.registry.link, queue.keys[6]
    ((_, fields),) = await link.call("XRANGE", key, identifier, identifier)
    expected = {**dict(zip(fields[::2], fields[1::2], strict=True)), field.encode(): value}
    spoilt = (
        await link.call("XADD", key, "*", *(part for pair in expected.items() for part in pair))
    ).decode()
    for path in (DEAD, f"{DEAD}?cursor={encode_cursor('dead', queue.qid, identifier)}", f"{DEAD}/{spoilt}"):
        reply = await console.get(path)
        assert (reply.status, reply.label) == (500, "store_fault")
        assert spoilt in reply.document["detail"]
    assert (await console.get(f"{DEAD}?limit=1")).items[0]["id"] == identifier


class TestPages:
    async def test_each_item_once(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        ids = await console.bury(queue, *(b"%d" % number for number in range(25)))
        seen = [letter["id"] for letter in await console.every(f"{DEAD}?limit=4")]
        assert seen == ids

    async def test_with_a_filter(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        await console.bury(queue, *(b"%d" % number for number in range(500)))
        seen = [
            base64.b64decode(letter["bodyBase64"])
            for letter in await console.every(f"{DEAD}?limit=7&body=5%24")
        ]
        assert seen == [b"%d" % number for number in range(5, 500, 10)]

    async def test_the_last_page_ends(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        await console.bury(queue, b"1", b"2")
        first = await console.found(f"{DEAD}?limit=2")
        second = await console.found(f"{DEAD}?limit=2&cursor={first['next']}") if first["next"] else first
        assert second["next"] is None

    async def test_purge_between_pages(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        ids = await console.bury(queue, b"1", b"2", b"3")
        page = await console.found(f"{DEAD}?limit=1")
        await console.ask("POST", f"{DEAD}/purge", {"ids": ids[:2]}, headers={"If-Match": "*"})
        rest = await console.letters("orders", f"&cursor={page['next']}")
        assert [letter["id"] for letter in rest][-1:] == ids[2:]

    async def test_cursor_of_a_deleted_queue(self, console: LiveConsole) -> None:
        queue = await console.declare("orders")
        await console.bury(queue, b"1", b"2")
        page = await console.found(f"{DEAD}?limit=1")
        await console.tools.catalogue.delete(queue)
        await console.declare("orders")
        assert (await console.get(f"{DEAD}?cursor={page['next']}")).label == "bad_cursor"

    async def test_invalid_cursors(self, console: LiveConsole) -> None:
        await console.declare("orders")
        for cursor in ["x", "WyJkZWFkIl0", "%00", "A" * 3000, "WyJkZWFkIiwieCIsInkiXQ", "W1tbW1s", "%C3%BC"]:
            for path in (DEAD, "/queues", "/peers", "/reservations", "/jobs", "/edges"):
                reply = await console.get(f"{path}?cursor={cursor}")
                assert reply.label in ("bad_cursor", "bad_request"), path
