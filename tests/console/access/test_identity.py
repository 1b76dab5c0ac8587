"""Test authentication by tokens and a trusted proxy, and roles."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from multidict import CIMultiDict

from services.console.access.unauthenticated_log import MAX_ADDRESSES, UnauthenticatedLog
from services.console.contract.roles import Role
from services.console.routes import ROUTES
from services.console.settings import ConsoleSettings
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.servers import Server

TOKENS = [
    {"name": "eye", "role": "view", "sha256": hashlib.sha256(b"see").hexdigest()},
    {"name": "hand", "role": "operate", "sha256": hashlib.sha256(b"do").hexdigest()},
    {"name": "head", "role": "admin", "sha256": hashlib.sha256(b"rule").hexdigest()},
]
TOKEN_OF = {Role.VIEW: "see", Role.OPERATE: "do", Role.ADMIN: "rule"}
PROXY: dict[str, Any] = {
    "networks": ["127.0.0.0/8"],
    "roles": {"staff": "view", "ops": "operate", "root": "admin"},
}
BODIES = {  # a valid body for each route
    "queue.put": {"ackLevel": "memory"},
    "message.put": {"body": "a"},
    "dead.redrive": {"all": True, "dryRun": True},
    "dead.purge": {"all": True, "dryRun": True},
    "peer.put": {"protocol": "ring", "addresses": ["127.0.0.1"]},
}


@pytest.fixture
async def guarded(server: Server) -> AsyncIterator[LiveConsole]:
    async with LiveConsole(server.url, tokens=TOKENS) as console:
        yield console


class TestTokens:
    async def test_identity_of_a_token(self, guarded: LiveConsole) -> None:
        assert await guarded.found("/me", token="see") == {"who": "eye", "role": "view", "auth": "token"}
        assert await guarded.found("/me", token="rule") == {"who": "head", "role": "admin", "auth": "token"}

    async def test_invalid_credentials(self, guarded: LiveConsole) -> None:
        for authorization in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer nonsense",
            "Basic c2Vl",
            "see",
            "Bearer \u00a0",
            "Bearer \u00a0see",
            "Bearer " + "x" * 5000,
        ]:
            reply = await guarded.get(
                "/me", headers={"Authorization": authorization} if authorization else {}
            )
            assert (reply.status, reply.label) == (401, "unauthorized")
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")

    async def test_page_and_document_need_no_token(self, guarded: LiveConsole) -> None:
        """Check that page and document need no token, as the page has a sign-in form."""
        for path in ("/", "/openapi.json", "/healthz"):
            async with guarded.session.get(guarded.base + path) as response:
                assert response.status == 200


async def test_routes_check_the_role(guarded: LiveConsole) -> None:
    """Check that a sufficient role never gets 403, and an insufficient one does."""
    for route in ROUTES:
        path = route.path.replace("{name}", "orders").replace("{id}", "1-1")
        for role, token in TOKEN_OF.items():
            if route.action == "events.watch":
                continue
            reply = await guarded.ask(route.method, path, BODIES.get(route.action), token=token)
            is_allowed = route.role is None or role.may(route.role)
            assert (reply.status != 403) is is_allowed, (role, reply)
        assert (await guarded.ask(route.method, path, BODIES.get(route.action))).status == 401


async def test_a_refusal_is_in_the_audit_log(guarded: LiveConsole) -> None:
    assert (await guarded.get("/config", token="do")).status == 403
    assert (await guarded.ask("PUT", "/queues/orders", {"ackLevel": "memory"}, token="see")).status == 403
    lines = [(line["who"], line["what"], line["target"], line["outcome"]) for line in guarded.audited()]
    assert lines == [("hand", "config.show", "", "forbidden"), ("eye", "queue.put", "orders", "forbidden")]


class TestProxy:
    async def _ask(self, server: Server, headers: Mapping[str, str], **proxy: Any) -> Any:
        async with LiveConsole(server.url, proxy={**PROXY, **proxy}) as console:
            return await console.get("/me", headers=headers)

    async def test_user_and_groups(self, server: Server) -> None:
        reply = await self._ask(
            server, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "staff, ops,others"}
        )
        assert reply.document == {"who": "ann", "role": "operate", "auth": "proxy"}

    async def test_groups_without_access(self, server: Server) -> None:
        """Check that denials of a known user without access are in the store's audit log."""
        headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "others"}
        async with LiveConsole(server.url, proxy=PROXY) as console:
            for method, path in (("GET", "/me"), ("GET", "/queues"), ("PUT", "/queues/orders")):
                body = {"ackLevel": "memory"} if method == "PUT" else None
                reply = await console.ask(method, path, body, headers=headers)
                assert (reply.status, reply.label) == (403, "forbidden")
                assert "'ann'" in reply.document["detail"]
            root = {"X-Forwarded-User": "bob", "X-Forwarded-Groups": "root"}
            kept = (await console.get("/audit", headers=root)).items
            lines = [
                (line["who"], line["role"], line["auth"], line["action"], line["outcome"]) for line in kept
            ]
            assert lines == [
                ("ann", "", "proxy", action, "forbidden") for action in ("queue.put", "queue.list", "me.show")
            ]
            results = [
                (line["who"], line["role"], line["what"], line["target"]) for line in console.audited()
            ]
            assert results == [
                ("ann", None, "me.show", ""),
                ("ann", None, "queue.list", ""),
                ("ann", None, "queue.put", "orders"),
            ]

    async def test_no_user(self, server: Server) -> None:
        assert (await self._ask(server, {"X-Forwarded-Groups": "root"})).status == 401

    @pytest.mark.parametrize("twice", ["X-Forwarded-User", "X-Forwarded-Groups"])
    async def test_duplicate_headers(self, server: Server, twice: str) -> None:
        headers = CIMultiDict({"X-Forwarded-User": "ann", "X-Forwarded-Groups": "staff"})
        headers.add(twice, "root")
        reply = await self._ask(server, headers)
        assert (reply.status, reply.label) == (401, "unauthorized")
        assert twice in reply.document["detail"]

    async def test_headers_from_other_networks_are_ignored(self, server: Server) -> None:
        headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "root"}
        assert (await self._ask(server, headers, networks=["10.0.0.0/8"])).status == 401

    async def test_configured_header_names(self, server: Server) -> None:
        headers = {"Remote-User": "ann", "Remote-Groups": "root"}
        reply = await self._ask(server, headers, user_header="Remote-User", role_header="Remote-Groups")
        assert reply.document["role"] == "admin"

    @pytest.mark.parametrize("user", [b"\xff", b"a\xc2\x85b", b"ann\xe2\x80\xae", b"\xed\xa0\x80"])
    async def test_unprintable_user_names(self, server: Server, user: bytes) -> None:
        """Check that unprintable names are refused: they would be in logs, the audit log and origins of messages."""
        async with LiveConsole(server.url, proxy=PROXY) as console:
            await console.declare("orders")
            assert (await _put_as(console, user)).startswith(b"HTTP/1.1 400")
            assert (await _put_as(console, "J\u00f6rg M.".encode())).startswith(b"HTTP/1.1 201")
            assert (await console.stats("orders"))["ready"] == 1

    async def test_beside_tokens(self, server: Server) -> None:
        async with LiveConsole(server.url, proxy=PROXY, tokens=TOKENS) as console:
            assert (await console.found("/me", token="see"))["auth"] == "token"
            headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "root"}
            assert (await console.found("/me", headers=headers))["auth"] == "proxy"


async def _put_as(console: LiveConsole, user: bytes) -> bytes:
    """Publish as this user; return the head of the response."""
    body = b'{"body": "a"}'
    head = b"POST /api/v1/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    given = b"X-Forwarded-User: %s\r\nX-Forwarded-Groups: root\r\nContent-Length: %d\r\n\r\n" % (
        user,
        len(body),
    )
    reader, writer = await asyncio.open_connection(*console.place)
    try:
        writer.write(head + given + body)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()


class TestSettings:
    def test_without_tokens_only_loopback_is_allowed(self) -> None:
        for host in ["0.0.0.0", "::", "10.1.2.3"]:
            with pytest.raises(ValueError, match=r"console\.tokens or console\.proxy"):
                ConsoleSettings(host=host)
            assert ConsoleSettings.model_validate({"host": host, "tokens": TOKENS}).host == host

    def test_loopback_hosts_are_local(self) -> None:
        for host in ["127.0.0.1", "127.1.2.3", "::1", "localhost"]:
            assert ConsoleSettings(host=host).is_local

    def test_invalid_tokens(self) -> None:
        for token in [
            {"name": "a", "role": "view"},
            {"name": "a", "role": "view", "sha256": "12"},
            {"name": "a", "role": "view", "sha256": hashlib.sha256(b"").hexdigest()},
            {"name": "a", "role": "view", "sha256": hashlib.sha256(b"test").hexdigest().upper()},
            {"name": "a", "role": "view", "sha256": "a" * 64, "file": "x"},
            {"name": "", "role": "view", "sha256": "a" * 64},
            {"name": "a", "role": "king", "sha256": "a" * 64},
        ]:
            with pytest.raises(ValueError):
                ConsoleSettings.model_validate({"tokens": [token]})

    def test_duplicate_tokens(self) -> None:
        for other in [
            {"name": "eye", "role": "admin", "sha256": "a" * 64},
            {"name": "other", "role": "admin", "sha256": hashlib.sha256(b"see").hexdigest().upper()},
        ]:
            with pytest.raises(ValueError, match="two tokens have the same"):
                ConsoleSettings.model_validate({"tokens": [*TOKENS, other]})

    def test_digests_are_masked(self) -> None:
        settings = ConsoleSettings.model_validate({"tokens": TOKENS})
        assert {token["sha256"] for token in settings.model_dump(mode="json")["tokens"]} == {"***"}


async def test_settings_are_shown_without_digests(guarded: LiveConsole) -> None:
    document = await guarded.found("/config", token="rule")
    assert document["settings"]["console"]["refresh_s"] == 0.1
    text = (await guarded.get("/config", token="rule")).body
    for token in TOKENS:
        assert token["sha256"].encode() not in text


async def test_unauthenticated_requests_are_logged_once_per_address(guarded: LiveConsole) -> None:
    """Check that unauthenticated requests are logged once per address, for any number and any paths."""
    for _ in range(20):
        assert (await guarded.get("/queues")).status == 401
        assert (await guarded.ask("PUT", "/queues/orders", {})).status == 401
        assert (
            await guarded.ask("PUT", "/queues/orders", {}, headers={"Origin": "http://evil"})
        ).status == 403
    (line,) = guarded.log.events("stranger")
    assert (vars(line)["address"], vars(line)["path"]) == ("127.0.0.1", "/api/v1/queues")
    assert guarded.audited() == []


def test_repetitions_are_logged_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    requests = UnauthenticatedLog(lambda: now)
    for number in range(3 * MAX_ADDRESSES):
        requests.add(f"10.{number}", "GET", "/")
    requests.add("10.7", "GET", "/")
    assert len(caplog.records) == MAX_ADDRESSES + 1
    now = 60.0
    requests.add("10.7", "GET", "/")
    results = [record.getMessage() for record in caplog.records[MAX_ADDRESSES + 1 :]]
    assert results == [
        "rejected 1 more unauthenticated requests from 10.7",
        f"rejected {2 * MAX_ADDRESSES - 1} more unauthenticated requests from others",
        "rejected unauthenticated request from 10.7",
    ]
