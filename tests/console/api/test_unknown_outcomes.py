"""Test that a change which was made is never reported or audited as failed (docs/console.md, Errors)."""

from __future__ import annotations

import asyncio

import pytest

from services.console import process
from services.store.model.keys import DomainKeys, RegistryKeys
from tests.console.live_console import LiveConsole
from tests.console.local import LINE
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server

PUT = (
    b"POST /api/v1/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    + LINE
)
ANY = {"If-Match": "*"}


def silence(server: Server) -> None:
    """Make notifications, the last step of a change, fail from now on."""
    server.call("ACL", "SETUSER", "default", "-publish")


@pytest.mark.parametrize("is_new", [True, False])
async def test_queue_change_without_notification(own_server: Server, is_new: bool) -> None:
    async with LiveConsole(own_server.url) as console:
        if not is_new:
            await console.declare("orders")
        silence(own_server)
        reply = await console.ask(
            "PUT", "/queues/orders", {"ackLevel": "memory", "maxLength": 3}, headers={} if is_new else ANY
        )
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert (await console.tools.catalogue.find("orders")).spec.max_length == 3
        (line,) = console.audited()
        assert (line["what"], line["outcome"]) == ("queue.put", "outcome_unknown")


async def test_queue_deletion_without_notification(own_server: Server) -> None:
    async with LiveConsole(own_server.url) as console:
        await console.declare("orders")
        silence(own_server)
        reply = await console.ask("DELETE", "/queues/orders", headers=ANY)
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert (await console.get("/queues/orders")).status == 404


async def test_queue_deletion_with_a_lost_catalogue(own_server: Server) -> None:
    """Check a deletion that the domain made before the loss of the catalogue was noticed."""
    async with LiveConsole(own_server.url) as console:
        queue = await console.declare("orders")
        own_server.call("DEL", RegistryKeys().epoch)
        reply = await console.ask("DELETE", "/queues/orders", headers=ANY)
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert "penstock store init" in reply.document["detail"]
        assert own_server.call("HGET", queue.keys[1], "deleted") == b"1"


async def test_queue_in_a_domain_that_lost_its_data(own_server: Server) -> None:
    async with LiveConsole(own_server.url) as console:
        await console.declare("far", domain="other")
        own_server.call("DEL", DomainKeys("other").epoch)
        reply = await console.ask("PUT", "/queues/late", {"ackLevel": "memory", "domain": "other"})
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert await console.tools.registry.document("late") is not None


async def test_peer_change_without_notification(own_server: Server) -> None:
    async with LiveConsole(own_server.url) as console:
        await console.tools.initialise()
        silence(own_server)
        reply = await console.ask("PUT", "/peers/west", {"protocol": "ring", "addresses": ["127.0.0.1"]})
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert (await console.get("/peers/west")).status == 200
        reply = await console.ask("DELETE", "/peers/west", headers=ANY)
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert (await console.get("/peers/west")).status == 404


async def test_peer_without_memory(own_server: Server) -> None:
    """Check that a peer is not stored without memory, and the response says so."""
    async with LiveConsole(own_server.url) as console:
        await console.tools.initialise()
        own_server.call("CONFIG", "SET", "maxmemory", "1")
        reply = await console.ask("PUT", "/peers/west", {"protocol": "ring", "addresses": ["127.0.0.1"]})
        assert (reply.status, reply.label) == (503, "store_unavailable")
        assert (await console.get("/peers/west")).status == 404


async def test_store_outage_after_the_change(server: Server) -> None:
    async with Proxy(server.port) as proxy, LiveConsole(proxy.url, refresh_s=60) as console:
        await console.declare("orders")
        proxy.lose_replies_to = b"\r\nps1_stats\r\n"
        reply = await console.ask(
            "PUT", "/queues/orders", {"ackLevel": "memory", "paused": True}, headers=ANY
        )
        proxy.lose_replies_to = b""
        assert (reply.status, reply.label) == (504, "outcome_unknown")
        assert (await console.tools.catalogue.find("orders")).spec.paused


async def test_interrupted_request_is_audited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a process that stops while it waits for the store audits an unknown outcome."""
    monkeypatch.setattr(process, "SHUTDOWN_S", 0.2)
    async with Proxy(server.port) as proxy, LiveConsole(proxy.url) as console:
        await console.declare("orders")
        proxy.lose_replies_to = b"ps1_work"
        reader, writer = await asyncio.open_connection(*console.place)
        try:
            writer.write(PUT + b"Content-Length: 13\r\n\r\n" + b'{"body": "b"}')
            await until(lambda: proxy.lost)
            await console.stop_taking()
            assert await reader.read() == b""
        finally:
            proxy.lose_replies_to = b""
            writer.close()
        assert [line["outcome"] for line in console.audited(what="message.put")] == ["unknown"]
