"""Test invalid requests: they are refused, within limits, without an internal error."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from tests.console.live_console import LiveConsole
from tests.console.local import TOKEN
from tests.servers import Server

PUT = "/api/v1/queues/orders/messages"
PATIENCE_S = 30.0


async def _raw(console: LiveConsole, *pieces: bytes) -> bytes:
    """Send octets, and return the first response."""
    reader, writer = await asyncio.open_connection(*console.place)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            return head + (await reader.readexactly(int(length[0].split(b":")[1])) if length else b"")
    finally:
        writer.close()


def _head(method: str = "POST", path: str = PUT, **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines.append(f"Authorization: Bearer {TOKEN}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


class TestHugeBodies:
    async def test_are_refused_before_they_are_read(self, console: LiveConsole) -> None:
        reply = await _raw(console, _head(Content_Length="100000000"))
        assert reply.startswith(b"HTTP/1.1 413")
        assert b'"label":"too_large"' in reply

    async def test_are_refused_with_expect_100_continue(self, console: LiveConsole) -> None:
        reply = await _raw(console, _head(Content_Length="100000000", Expect="100-continue"))
        assert reply.startswith(b"HTTP/1.1 413")
        reply = await _raw(console, _head(Content_Length="2", Expect="100-continue"))
        assert reply == b"HTTP/1.1 100 Continue\r\n\r\n"
        reply = await _raw(console, _head(Content_Length="2", Expect="miracles"))
        assert reply.startswith(b"HTTP/1.1 417")

    async def test_are_refused_when_chunked(self, console: LiveConsole) -> None:
        chunk = b"%x\r\n%s\r\n" % (1 << 16, b"x" * (1 << 16))
        head = _head("PUT", "/api/v1/queues/orders", Transfer_Encoding="chunked")
        reply = await _raw(console, head, *[chunk] * 20)
        assert reply.startswith(b"HTTP/1.1 413")

    async def test_limit_depends_on_the_route(self, console: LiveConsole) -> None:
        reply = await console.ask("PUT", "/queues/orders", data=b" " * ((1 << 20) + 1))
        assert (reply.status, reply.label) == (413, "too_large")


async def test_invalid_bodies(console: LiveConsole) -> None:
    for data, status in [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"NaN", 400),
        (b'{"maxLength": Infinity}', 400),
        (b"[" * 100_000, 400),
        (b"[" * 40 + b"]" * 40, 400),
        (b'{"remote": "\\ud800"}', 400),
        (b'{"\\ud800": 1}', 400),
        (b'{"maxLength": ' + b"9" * 5000 + b"}", 400),
        (b'{"maxLength": 1e400}', 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"maxLength": 99999999999999999999}', 422),
        (b'{"maxLength": true}', 422),
        (b'{"maxLength": 1, "maxLength": -1}', 422),
    ]:
        assert (await console.ask("PUT", "/queues/orders", data=data)).status == status


async def test_form_content_types_are_rejected(console: LiveConsole) -> None:
    """Check that form types are rejected, as pages of other origins can send them without a CORS preflight."""
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x"]:
        reply = await console.ask("PUT", "/queues/orders", data=b"{}", headers={"Content-Type": kind})
        assert (reply.status, reply.label) == (415, "unsupported_media_type")


async def test_unknown_paths_and_methods(console: LiveConsole) -> None:
    for path in ("/nope", "/queues/a/b/c", "/queues//dead", "/..", "/%00"):
        assert (await console.get(path)).status == 404
    reply = await console.ask("POST", "/queues", {})
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    reply = await console.ask("PATCH", "/queues/orders", {})
    assert reply.status == 405
    for method, path, allowed in (  # the page has no address of the API
        ("GET", "/connections/tmq-1", "DELETE"),
        ("PUT", "/connections/tmq-1", "DELETE"),
        ("GET", "/queues/orders/dead/purge/", ""),
        ("GET", "/queues/orders/messages/purge", "POST"),
    ):
        reply = await console.ask(method, path)
        assert (reply.status, reply.headers.get("Allow", "")) == (405 if allowed else 404, allowed), path


async def test_a_head_has_no_body(console: LiveConsole) -> None:
    reply = await console.ask("HEAD", "/queues")
    assert (reply.status, reply.body) == (200, b"")


async def test_invalid_queries(console: LiveConsole) -> None:
    await console.declare("orders")
    for query in ["ifEmpty=maybe", "ifEmpty=", "if_empty=true", "x=1"]:
        reply = await console.ask("DELETE", f"/queues/orders?{query}", headers={"If-Match": "*"})
        assert reply.status == 400


def _is_a_plain_problem(reply: bytes) -> bool:
    """Return whether a response is a problem of status 400 that reveals no versions."""
    head, _, body = reply.partition(b"\r\n\r\n")
    lines = {line.partition(b":")[0].lower(): line.partition(b": ")[2] for line in head.split(b"\r\n")[1:]}
    return (
        head.split()[1] == b"400"
        and (lines[b"content-type"], lines[b"server"]) == (b"application/problem+json", b"penstock")
        and b"default-src" in lines[b"content-security-policy"]
        and json.loads(body)["label"] == "bad_request"
        and b"Python" not in reply
        and b"aiohttp" not in reply
    )


async def test_invalid_http(console: LiveConsole) -> None:
    for text in [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\na\r\n\r\n",
    ]:
        assert _is_a_plain_problem(await _raw(console, text))
        assert (await console.get("/me")).status == 200


async def test_request_line_too_long(console: LiveConsole) -> None:
    """Check that a request line that is too long is refused before routing."""
    reply = await _raw(console, _head("GET", "/api/v1/queues?q=" + "x" * 9000))
    assert _is_a_plain_problem(reply)
    assert b"too long" in reply


PACKED = gzip.compress(b'{"ackLevel": "memory"}')


async def test_compressed_bodies_are_rejected(console: LiveConsole) -> None:
    """Check that compressed bodies are rejected: they could expand without bound, and truncated ones look complete."""
    for data in [PACKED, PACKED[:-6], b"garbage"]:
        for coding in ["gzip", "deflate", "br", "rot13", "gzip, identity", "\u00e9"]:
            headers = {"Content-Encoding": coding, "If-Match": "*"}
            for method in ("PUT", "DELETE"):
                reply = await console.ask(method, "/queues/orders", data=data, headers=headers)
                assert (reply.status, reply.label) == (415, "unsupported_media_type")
            headers["Content-Encoding"] = "Identity"
            assert (
                await console.ask("PUT", "/queues/orders", {"ackLevel": "memory"}, headers=headers)
            ).status == 412


@pytest.mark.parametrize(
    "tokens", [[], [{"name": "a", "role": "view", "sha256": "a" * 64}]], ids=["open", "tokens"]
)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_invalid_chunks(server: Server, method: str, tokens: list[Any]) -> None:
    """Check that invalid chunks log no internal error, with or without authentication."""
    async with LiveConsole(server.url, tokens=tokens) as console:
        head = _head(method, "/api/v1/queues/orders", Transfer_Encoding="chunked", If_Match="*")
        reply = await _raw(console, head, b"5\r\n{}   \r\n", b"zz\r\n\r\n")
        assert int(reply.split(b" ")[1]) in (400, 401)
        assert (await console.get("/me")).status == (401 if tokens else 200)
        assert console.log.events("console_fault") == []
