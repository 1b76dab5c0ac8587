"""Test messages over HTTP."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import Any

import pytest

from services.console.contract.cursor import encode_cursor
from services.console.http import bodies
from tests.console.live_console import LiveConsole
from tests.live import until

PUT = "/queues/orders/messages"


async def test_put_and_peek(console: LiveConsole) -> None:
    await console.declare("orders")
    assert (await console.ask("POST", PUT, {"body": "grün", "attributes": {"a": 1, "b": None}})).status == 201
    raw = base64.b64encode(b"\0\xff").decode()
    assert (await console.ask("POST", PUT, {"bodyBase64": raw})).document == {"stored": 1}
    first, second = (await console.get(PUT)).items
    assert base64.b64decode(first["bodyBase64"]).decode() == "grün"
    assert first["attributes"] == {"a": 1, "b": None}
    assert first["origin"].startswith("console local@127.0.0.1")
    assert (first["givenOut"], first["failed"], first["truncated"]) == (0, 0, False)
    assert second["bodyBase64"] == raw
    assert first["position"] != second["position"]
    assert (await console.stats("orders"))["ready"] == 2
    assert (await console.get("/queues")).items[0]["ready"] == 2


async def test_bodies_are_truncated(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.fill(queue, b"x" * 5000, b"y" * 10)
    long, short = (await console.get(f"{PUT}?octets=10")).items
    assert (long["bytes"], long["truncated"]) == (5000, True)
    assert base64.b64decode(long["bodyBase64"]) == b"x" * 10
    assert (short["bytes"], short["truncated"]) == (10, False)
    assert len((await console.get(f"{PUT}?limit=1")).items) == 1


async def test_large_body_does_not_block_other_requests(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    await console.declare("orders")
    read, is_read, may_end = bodies.parse, threading.Event(), threading.Event()
    waits: list[bool] = []

    def slowly(body: bytes) -> Any:
        is_read.set()
        waits.append(may_end.wait(20))
        return read(body)

    monkeypatch.setattr(bodies, "parse", slowly)
    putting = asyncio.create_task(console.ask("POST", PUT, {"body": "a" * (1 << 20)}))
    await until(is_read.is_set)
    assert (await console.get("/me")).status == 200
    may_end.set()
    assert (await putting).status == 201
    assert waits == [True]


async def test_the_next_page(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.fill(queue, *(b"%d" % number for number in range(45)))
    pages = await console.pages(f"{PUT}?limit=20")
    seen = [base64.b64decode(item["bodyBase64"]) for page in pages for item in page]
    assert (len(pages), seen) == (3, [b"%d" % number for number in range(45)])
    assert (await console.stats("orders"))["ready"] == 45


async def test_page_ends_after_four_mebibytes(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    for number in range(3):
        await console.fill(queue, b"%d" % number * (3 << 20))
    first = await console.found(f"{PUT}?octets=1")
    second = await console.found(f"{PUT}?octets=1&cursor={first['next']}")
    found = [[base64.b64decode(item["bodyBase64"]) for item in page["items"]] for page in (first, second)]
    assert found == [[b"0", b"1"], [b"2"]]
    assert second["next"] is None


async def test_cursor_belongs_to_one_queue(console: LiveConsole) -> None:
    """Check that a cursor is invalid for another queue, also one of the same name."""
    queue = await console.declare("orders")
    await console.fill(queue, b"one", b"two")
    cursor = (await console.found(f"{PUT}?limit=1"))["next"]
    assert len((await console.found(f"{PUT}?cursor={cursor}"))["items"]) == 1
    await console.fill(await console.declare("others"), b"one", b"two")
    assert (await console.get(f"/queues/others/messages?cursor={cursor}")).label == "bad_cursor"
    await console.tools.catalogue.delete(queue)
    await console.fill(await console.declare("orders"), b"three", b"four")
    reply = await console.get(f"{PUT}?cursor={cursor}")
    assert (reply.status, reply.label) == (400, "bad_cursor")


async def test_invalid_cursors(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    for place in [
        ["messages", "QID", "x"],
        ["messages", "QID", "9" * 16],
        ["messages", "1"],
        ["jobs", "QID", "1"],
        ["messages"],
    ]:
        results = [queue.qid if part == "QID" else part for part in place]
        reply = await console.get(f"{PUT}?cursor={encode_cursor(*results)}")
        assert (reply.status, reply.label) == (400, "bad_cursor")


async def test_attributes_that_json_does_not_support(console: LiveConsole) -> None:
    """Check attributes that JSON does not support, which other protocols can set."""
    queue = await console.declare("orders")
    odd = {"octets": b"\xff", "nan": float("nan"), "inner": {"list": [b"a", 1]}}
    await console.fill(queue, b"body", attributes=odd)
    (only,) = (await console.get(PUT)).items
    assert only["attributes"] == {"octets": "\udcff", "nan": "nan", "inner": {"list": ["a", 1]}}


@pytest.mark.parametrize(
    ("spec", "status", "label"),
    [
        ({"maxLength": 1}, 429, "queue_full"),
        ({"paused": True}, 409, "queue_paused"),
        ({"remote": {"protocol": "rqp-mca", "queueId": 1, "maxMessageBytes": 3}}, 413, "too_large_for_peers"),
    ],
)
async def test_refusal_of_a_queue_has_status_and_label(
    console: LiveConsole, spec: dict[str, Any], status: int, label: str
) -> None:
    queue = await console.declare("orders", **spec)
    if label == "queue_full":
        await console.fill(queue, b"one")
    reply = await console.ask("POST", PUT, {"body": "four"})
    assert (reply.status, reply.label) == (status, label)


async def test_store_full(console: LiveConsole) -> None:
    await console.declare("orders")
    used = int(
        (await console.tools.registry.link.call("INFO", "memory")).split(b"used_memory:")[1].split()[0]
    )
    await console.tools.registry.link.call("CONFIG", "SET", "maxmemory", int(used * 1.2))
    try:
        reply = await console.ask("POST", PUT, {"body": "x" * 1000})
        assert (reply.status, reply.label) == (507, "store_full")
    finally:
        await console.tools.registry.link.call("CONFIG", "SET", "maxmemory", 512 << 20)


async def test_invalid_messages(console: LiveConsole) -> None:
    await console.declare("orders")
    for body, status in [
        ({}, 422),
        ({"body": "a", "bodyBase64": "YQ=="}, 422),
        ({"bodyBase64": "no base64!"}, 400),
        ({"body": "a", "attributes": {"a": []}}, 422),
        ({"body": "a", "attributes": {"a": 1 << 70}}, 422),
        ({"body": 1}, 422),
        ([], 422),
        ("text", 422),
    ]:
        assert (await console.ask("POST", PUT, body)).status == status
        assert (await console.stats("orders"))["ready"] == 0


async def test_largest_message(console: LiveConsole) -> None:
    await console.declare("orders")
    largest = (1 << 24) - 1
    reply = await console.ask("POST", PUT, {"bodyBase64": base64.b64encode(b"x" * largest).decode()})
    assert reply.status == 201
    (only,) = (await console.get(f"{PUT}?octets=1")).items
    assert only["bytes"] == largest
    reply = await console.ask("POST", PUT, {"body": "x" * largest, "attributes": {"one": "more"}})
    assert (reply.status, reply.label) == (413, "too_large")


async def test_unknown_queue(console: LiveConsole) -> None:
    assert (await console.ask("POST", PUT, {"body": "a"})).label == "queue_unknown"
    assert (await console.get(PUT)).label == "queue_unknown"
