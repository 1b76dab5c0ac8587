"""Test limits of memory and time of requests."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.console.api import dead, messages
from services.console.api.messages import LONGEST_BODY, LONGEST_REQUEST
from services.console.http.bodies import MAX_VALUES, has_more_values
from services.console.http.memory_budget import OCTETS, OPEN_OCTETS
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.console.local import LINE
from tests.live import until

PUT = (
    b"POST /api/v1/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    + LINE
)
MESSAGE = {"body": "a"}


def test_values_are_not_counted_in_strings() -> None:
    for text, parts in [
        (b"{}", 1),
        (b'{"a":[1,2,[]],"b":""}', 6),
        (b'{"a":"[[[,,,"}', 1),
        (rb'{"a":"\"[","b":"\\","c":[]}', 4),
        (rb'["\\\"[,{","\\\\",{}]', 4),
        (rb'["\n\\","x\\",[]]', 4),
        (b'[["', 2),
    ]:
        assert has_more_values(text, parts - 1)
        assert not has_more_values(text, parts)


def test_many_quotes_count_as_many_values() -> None:
    """Check that many quotes count as many values, without splitting the text into more pieces than allowed values."""
    assert has_more_values(b"[" * 11 + b'"' * 1000, 10)


async def test_document_with_too_many_values(console: LiveConsole) -> None:
    await console.declare("orders")
    many = b'{"x":[' + b"[]," * (LONGEST_REQUEST // 3 - 100) + b"[]]}"
    reply = await console.ask("POST", "/queues/orders/messages", data=many)
    assert (reply.status, reply.label) == (400, "bad_request")
    assert f"{MAX_VALUES:,}" in reply.document["detail"]


async def test_string_with_many_brackets(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    body = '[{"a": "\\"}]' * MAX_VALUES
    assert (await console.ask("POST", "/queues/orders/messages", {"body": body})).status == 201
    (delivery,) = await console.tools.get_domain(queue.domain).peek(queue, 1)
    assert delivery.body_bytes == len(body)


async def test_number_of_reported_errors_is_limited(console: LiveConsole) -> None:
    data = json.dumps({f"x{number}": 0 for number in range(5000)}).encode()
    reply = await console.ask("PUT", "/queues/orders", data=data)
    assert (reply.status, len(reply.document["errors"])) == (422, 100)


async def test_concurrent_request_bodies(console: LiveConsole) -> None:
    """Check that bodies within their own limit share a limit, and that requests succeed again once they are gone."""
    await console.declare("orders")
    head = PUT + b"Content-Length: %d\r\n\r\n" % LONGEST_REQUEST
    asking = [await asyncio.open_connection(*console.place) for _ in range(3)]
    try:
        for _, writer in asking:
            writer.write(head + b" " * (LONGEST_REQUEST - 1))
        heads = [asyncio.ensure_future(reader.readuntil(b"\r\n\r\n")) for reader, _ in asking]
        done, waiting = await asyncio.wait(heads, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result().split(b"\r\n")[0] for each in done} == {b"HTTP/1.1 503 Service Unavailable"}
        for each in waiting:
            each.cancel()
    finally:
        for _, writer in asking:
            writer.transport.abort()

    async def is_taken() -> bool:
        return (await console.ask("POST", "/queues/orders/messages", MESSAGE)).status == 201

    await until(is_taken)


@asynccontextmanager
async def unread(console: LiveConsole, path: str, number: int) -> AsyncIterator[None]:
    """Yield while clients have received the headers and read no further."""
    asking = [await asyncio.open_connection(*console.place) for _ in range(number)]
    try:
        for reader, writer in asking:
            writer.write(f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n".encode() + LINE + b"\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        yield
    finally:
        for _, writer in asking:
            writer.transport.abort()


async def test_unread_bodies_of_dead_letters(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    body = b"x" * (LONGEST_BODY - 100)
    (letter,) = await console.bury(queue, body)
    path = f"/queues/orders/dead/{letter}/body"
    assert (await console.get(path)).body == body
    async with unread(console, path, 4):
        reply = await console.get(path)
        assert (reply.status, reply.label) == (503, "busy")

    async def is_served() -> bool:
        return (await console.get(f"/queues/orders/dead/{letter}")).status == 200

    await until(is_served)


@pytest.mark.parametrize("what", ["dead", "messages"])
async def test_unread_lists_of_bodies(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Check unread lists of bodies, of which two of the largest fit in base64."""
    queue = await console.declare("orders")
    body = b"x" * (LONGEST_BODY - 100)
    await (console.bury(queue, body) if what == "dead" else console.fill(queue, body))
    path = f"/queues/orders/{what}?octets={LONGEST_BODY}"
    (item,) = (await console.get(path)).items
    assert (item["bytes"], item["truncated"]) == (len(body), False)
    async with unread(console, path, 2):
        # a response without room is not built, as it would use the memory
        with monkeypatch.context() as patch:
            patch.setattr(dead if what == "dead" else messages, "_document", lambda *_: 1 // 0)
            reply = await console.get(path)
        assert (reply.status, reply.label) == (503, "busy")
        assert (await console.get(f"/queues/orders/{what}")).status == 200

    async def is_served() -> bool:
        return (await console.get(path)).status == 200

    await until(is_served)


async def test_attributes_count(console: LiveConsole) -> None:
    """Check that attributes count towards a response's size, which is known when it is encoded."""
    queue = await console.declare("orders")
    await console.fill(queue, *[b""] * 300, attributes={"a": "x" * 60_000})
    budget = console.inside.budget
    path = "/queues/orders/messages?limit=300"
    assert len((await console.get(path)).body) > 4_000_000
    budget.take(OCTETS - 4_000_000)
    reply = await console.get(path)
    assert (reply.status, reply.label) == (503, "busy")
    with budget.share() as share:
        share.take(4_000_000)  # the refused response holds no memory
    assert (await console.get("/queues/orders/messages?limit=3")).status == 200


MESSAGES, OPENAPI = "/queues/orders/messages?limit=100&octets=7000", "/openapi.json"


@pytest.mark.parametrize(("path", "other"), [(MESSAGES, OPENAPI), (OPENAPI, MESSAGES)])
async def test_many_unread_small_responses(console: LiveConsole, path: str, other: str) -> None:
    """Check that unread small responses share a budget; a thousand connections could have one each.

    The OpenAPI document has a budget of its own.
    """
    queue = await console.declare("orders")
    await console.fill(queue, *[b"y" * 7000] * 100)
    size = len((await console.get(path)).body)
    assert 100_000 < size < 1 << 20
    inside = console.inside
    budget, octets = (inside.open_budget, OPEN_OCTETS) if path == OPENAPI else (inside.budget, OCTETS)
    budget.take(octets - size * 3 // 2)  # enough for one more response, and not for two

    async def is_busy() -> bool:
        return (await console.get(path)).status == 503

    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, console.place)
        head = f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n".encode() + LINE + b"\r\n"
        await loop.sock_sendall(slow, head * 40)  # more than the network itself buffers
        await until(is_busy)
        assert (await console.get(other)).status == 200

    async def is_free() -> bool:
        return not await is_busy()

    await until(is_free)


async def test_page_of_dead_letters_ends_after_4_mib(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.bury(queue, *[b"x" * 1_000_000] * 12)
    pages = await console.pages("/queues/orders/dead?octets=1000000")
    assert all(len(page) <= 6 for page in pages)
    seen = [item["id"] for page in pages for item in page]
    assert len(set(seen)) == len(seen) == 12
    few = await console.found("/queues/orders/dead?octets=10&body=x")  # read whole, and cut
    assert {len(item["bodyBase64"]) for item in few["items"]} == {16}
