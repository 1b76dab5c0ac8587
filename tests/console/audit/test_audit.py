"""Test the audit log over HTTP."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from services.console import process
from services.console.audit import audit
from services.console.contract.cursor import encode_cursor
from services.store.model.keys import RegistryKeys
from tests.console.live_console import LiveConsole
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server
from tests.stores import NewServer

SPEC = {"ackLevel": "memory"}


async def test_every_change_is_logged(console: LiveConsole) -> None:
    await console.ask("PUT", "/queues/orders", SPEC)
    await console.ask("PUT", "/queues/orders", SPEC)
    await console.ask("POST", "/queues/orders/messages", {"body": "secret"})
    await console.ask("POST", "/queues/orders/messages", {})
    await console.ask("POST", "/queues/orders/dead/purge", {"all": True, "dryRun": True})
    await console.ask("DELETE", "/queues/orders", headers={"If-Match": "*"})
    await console.get("/queues")
    lines = (await console.get("/audit")).items
    assert [(line["action"], line["outcome"]) for line in reversed(lines)] == [
        ("queue.put", "done"),
        ("queue.put", "precondition_required"),
        ("message.put", "done"),
        ("message.put", "invalid"),
        ("dead.purge", "done"),
        ("queue.delete", "done"),
    ]
    assert {(line["who"], line["role"], line["address"], line["target"]) for line in lines} == {
        ("local", "admin", "127.0.0.1", "orders")
    }
    assert json.loads(lines[0]["detail"]) == {"messages": 1}
    assert "secret" not in (await console.get("/audit")).body.decode()


async def test_pages(console: LiveConsole) -> None:
    for number in range(5):
        await console.ask("PUT", f"/queues/q{number}", SPEC)
    seen = [line["target"] for line in await console.every("/audit?limit=2")]
    assert seen == ["q4", "q3", "q2", "q1", "q0"]
    for made_up in ("x", encode_cursor("audit", "0-0"), encode_cursor("audit", "+")):
        assert (await console.get(f"/audit?cursor={made_up}")).label == "bad_cursor"


async def test_names_of_any_octets(console: LiveConsole) -> None:
    await console.ask("PUT", "/queues/%FF%2F", SPEC)
    assert (await console.get("/audit")).items[0]["target"] == "\udcff/"


async def test_response_does_not_wait_for_an_unavailable_store(new_server: NewServer) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        server.kill9()
        reply = await console.ask("DELETE", "/queues/orders", headers={"If-Match": "*"})
        assert reply.status == 503
        await until(lambda: console.log.events("audit_not_kept"))
        assert console.value("penstock_console_audit_failures_total") == 1
        (line,) = console.audited()
        assert (line["what"], line["outcome"]) == ("queue.delete", "store_unavailable")


async def test_line_interrupted_by_process_stop_is_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a line is counted whose writing is interrupted after the change."""
    monkeypatch.setattr(audit, "WRITE_S", 600.0)
    monkeypatch.setattr(process, "SHUTDOWN_S", 0.2)
    async with Proxy(server.port) as proxy, LiveConsole(proxy.url) as console:
        await console.tools.initialise()
        proxy.keep(RegistryKeys().audit.encode())
        asking = asyncio.create_task(console.ask("PUT", "/queues/orders", SPEC))
        await until(lambda: proxy.held)
        assert console.value("penstock_console_audit_failures_total") == 0
        await console.stop_taking()
        with pytest.raises(aiohttp.ClientError):
            await asking
        assert console.value("penstock_console_audit_failures_total") == 1
        assert [line["outcome"] for line in console.audited(what="queue.put")] == ["done"]
        proxy.let_go()
        assert (await console.tools.catalogue.find("orders")).spec.max_length == 0


async def test_refusals_do_not_push_out_changes(server: Server) -> None:
    """Check that refusals, dry runs and messages have a limit of their own, apart from changes."""
    async with LiveConsole(server.url, audit_lines=100) as console:
        await console.ask("PUT", "/queues/orders", SPEC)
        for _ in range(150):
            assert (await console.ask("PUT", "/queues/orders", SPEC)).status == 428
            assert (await console.ask("POST", "/queues/orders/messages", {"body": "a"})).status == 201
            reply = await console.ask("POST", "/queues/orders/dead/redrive", {"all": True, "dryRun": True})
            assert reply.status == 200
        lines = (await console.get("/audit?limit=1000")).items
        assert len(lines) < 400
        assert (lines[-1]["action"], lines[-1]["outcome"]) == ("queue.put", "done")
