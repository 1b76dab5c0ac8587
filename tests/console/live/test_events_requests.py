"""Test requests of the live view against the OpenAPI document of `GET /events`.

The stream has no end, so the tests that are made from the document leave it out.
"""

from __future__ import annotations

from typing import Any

from services.console.contract.shapes import Me, Overview, QueueSummary
from services.console.openapi import PREFIX, document
from services.console.routes import ROUTES
from tests.console.access.test_identity import PROXY, TOKENS
from tests.console.live_console import Events, LiveConsole
from tests.servers import Server

SAID: dict[str, Any] = document(ROUTES)["paths"][f"{PREFIX}/events"]
TOKEN_OF = {"view": "see", "operate": "do", "admin": "rule"}


def test_the_document_names_no_parameter_and_one_method() -> None:
    """Check that the route has no parameters, whose invalid values would need tests here."""
    assert set(SAID) == {"get"}
    assert SAID["get"].get("parameters", []) == []
    assert "requestBody" not in SAID["get"]
    assert set(SAID["get"]["responses"]["200"]["content"]) == {"text/event-stream"}


async def _watches(console: LiveConsole, query: str = "", **headers: str) -> dict[str, Any]:
    """Open a live view, and return `hello`."""
    async with console.session.get(f"{console.base}{PREFIX}/events{query}", headers=headers) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert response.headers["Cache-Control"] == "no-store"
        assert "default-src" in response.headers["Content-Security-Policy"]
        found: dict[str, Any] = await Events(response).next("hello")
        return found


async def test_unknown_query_parameters(console: LiveConsole) -> None:
    for query in ("x=1", "x", "cursor=a", "lastEventId=1", "token=see", "%ff=1", "=", "x=1&x=2"):
        reply = await console.get(f"/events?{query}")
        assert (reply.status, reply.label) == (400, "bad_request")
        assert console.value("penstock_console_streams") == 0


async def test_head_returns_headers_only(console: LiveConsole) -> None:
    reply = await console.ask("HEAD", "/events")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    async with console.session.head(f"{console.base}{PREFIX}/events?x=1") as response:
        assert response.status == 400
    assert console.value("penstock_console_streams") == 0


async def test_other_methods(console: LiveConsole) -> None:
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]:
        async with console.session.request(method, f"{console.base}{PREFIX}/events") as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


async def test_irrelevant_headers_are_ignored(console: LiveConsole) -> None:
    for headers in [
        {"Last-Event-ID": "7"},
        {"Last-Event-ID": "\xff"},
        {"Accept": "application/json"},
        {"Accept-Encoding": "gzip"},
        {"If-None-Match": "*"},
        {"Range": "bytes=0-1"},
    ]:
        assert (await _watches(console, **headers))["role"] == "admin"


async def test_request_from_another_site(console: LiveConsole) -> None:
    """Check that a request from another site is refused and takes no stream."""
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    async with console.session.get(f"{console.base}{PREFIX}/events", headers=headers) as response:
        assert response.status == 403


async def test_request_bodies(console: LiveConsole) -> None:
    """Check that a small request body is ignored and a large one refused, as with all routes."""
    async with console.session.request(
        "GET", f"{console.base}{PREFIX}/events", data=b'{"a": 1}', headers={"Content-Type": "text/plain"}
    ) as response:
        assert response.status == 200
    reply = await console.ask("GET", "/events", data=b" " * ((1 << 20) + 1))
    assert (reply.status, reply.label) == (413, "too_large")


async def test_foreign_host_name(console: LiveConsole) -> None:
    reply = await console.get("/events", headers={"Host": "evil.example"})
    assert (reply.status, reply.label) == (421, "foreign_host")


async def test_hello_has_the_callers_identity(server: Server) -> None:
    async with LiveConsole(server.url, proxy=PROXY, tokens=TOKENS) as console:
        for role, token in TOKEN_OF.items():
            hello = await _watches(console, Authorization=f"Bearer {token}")
            by_name = {name: hello[name] for name in ("who", "role", "auth")}
            assert by_name == await console.found("/me", token=token)
            assert Me.model_validate(by_name).role == role
        for group, role in (("staff", "view"), ("ops", "operate"), ("root", "admin")):
            headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": group}
            hello = await _watches(console, **headers)
            assert (hello["who"], hello["role"], hello["auth"]) == ("ann", role, "proxy")
        headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "guests"}
        reply = await console.get("/events", headers=headers)
        assert (reply.status, reply.label) == (403, "forbidden")


async def test_authentication_precedes_validation(server: Server) -> None:
    async with LiveConsole(server.url, tokens=TOKENS) as console:
        for authorization in (
            "",
            "Bearer",
            "Bearer nonsense",
            "Basic c2Vl",
            "bearer",
            "Bearer " + "x" * 5000,
        ):
            headers = {"Authorization": authorization} if authorization else {}
            for path in ("/events", "/events?x=1"):
                reply = await console.get(path, headers=headers)
                assert (reply.status, reply.label) == (401, "unauthorized")
        assert console.value("penstock_console_streams") == 0


async def test_events_match_the_documented_models(console: LiveConsole) -> None:
    await console.declare("orders")
    async with console.session.get(f"{console.base}{PREFIX}/events") as response:
        events = Events(response)
        Overview.model_validate(await events.next("overview"))
        for row in (await events.next("queues"))["rows"]:
            QueueSummary.model_validate(row)
