"""Test the views of connections, peers, the audit log and the report."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from services.store import QueueSpec
from services.store.catalogue.audit import AuditEntry
from services.store.model.peer import PeerSpec
from services.store.report.report import Report
from services.store.report.reports import write_report
from tests import reports
from tests.console.page.browsing import axe, settled, show
from tests.console.page.scene import Scene, Text
from tests.live import set_up, until
from tests.servers import PROGRAMS, Server
from tests.tmq.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_connection_is_filtered_and_closed(place: Scene, page: Page) -> None:
    client = await Client.connect(place.edges[0].place("document"))
    host, port = client.address
    await show(page, place.address, "connections?edge=tmq", "Connections")
    await page.keyboard.press("/")
    await page.keyboard.type(f":{port}")
    rows = page.get_by_role("table", name="Connections").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await page.get_by_role("button", name=f"Close {host}:{port}").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Its unacknowledged messages return to their queues")
    assert await axe(page) == []
    await dialog.get_by_role("button", name="Close connection").click()
    await expect(dialog).to_have_count(0)
    assert await client.ended() in ("fin", "reset")
    client.close()
    await until(lambda: is_gone(page))


async def is_gone(page: Page) -> bool:
    await page.get_by_role("button", name="Refresh").click()
    await settled(page)
    return await page.get_by_text("No connection matches.").is_visible()


async def test_text_links_are_listed(place: Scene, page: Page, tmp_path: Path) -> None:
    """Check that a link is listed that a server of another store has dialled (pubsub.md 4)."""
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    try:
        await set_up(server)
        host, port = place.edges[1].place("link")
        async with Text(server.url, tmp_path, f"neighbours=['{host}:{port}']"):
            await show(page, place.address, "peers")
            rows = page.get_by_role("table", name="Text links").locator("tbody tr")
            await expect(rows).to_have_count(1)
            await expect(rows.get_by_role("rowheader")).to_have_text(re.compile(r"^store [^\s:]{6,}$"))
            await expect(rows).to_contain_text("link")
            assert await axe(page) == []
        await expect(page.get_by_text("No links to other text servers.")).to_be_visible()
    finally:
        server.end()


async def test_peer_is_created_and_deleted(place: Scene, page: Page) -> None:
    await show(page, place.address, "peers")
    await page.get_by_role("button", name="New peer").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("depot")
    await dialog.get_by_label("Document").fill('{"protocol": "ring", "addresses": "10.0.0.9"}')
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("addresses")
    await dialog.get_by_label("Document").fill('{"protocol": "ring", "addresses": ["10.0.0.9"]}')
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.locator("main h1")).to_have_text("depot")
    await expect(page.get_by_label("Document as YAML")).to_contain_text("- 10.0.0.9")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill("depot")
    await page.get_by_role("button", name="Delete peer").click()
    await expect(page.locator("main h1")).to_have_text("Peers")
    await expect(page.get_by_role("link", name="warehouse")).to_be_visible()
    await expect(page.get_by_role("link", name="depot")).to_have_count(0)


async def test_peer_lists_queues_forwarded_to_it(place: Scene, page: Page) -> None:
    """Check that a peer lists the queues forwarded to it, and the list of text links names declared addresses."""
    spec = {"protocol": "rqp-mca", "addresses": ["127.0.0.1:1"]}
    for name in ("far", "nearer"):
        await place.store.peers.apply(name, PeerSpec.model_validate(spec), "test")
        remote = {"remote": {"protocol": "rqp-mca", "peers": [name], "queueId": 5}}
        await place.store.catalogue.declare(f"to {name}", QueueSpec.model_validate(remote), "test")
    to_any = {"remote": {"protocol": "rqp-mca", "queueId": 6}}
    await place.store.catalogue.declare("to the first machine", QueueSpec.model_validate(to_any), "test")
    text = {"protocol": "text", "addresses": ["127.0.0.1:2"]}
    await place.store.peers.apply("chatty", PeerSpec.model_validate(text), "test")
    await show(page, place.address, "peers/far", "far")
    table = page.get_by_role("table", name="Queues forwarded to this peer")
    await expect(table.get_by_role("link")).to_have_text(["to far", "to the first machine"])
    await page.request.post(f"{place.address}api/v1/queues/to%20far/messages", data={"body": "x"})
    await expect(table.locator("tbody td").first).to_have_text("1")  # no edge here sends it
    assert await axe(page) == []
    await show(page, place.address, "peers")
    await expect(page.get_by_text("Edges keep trying to connect to 127.0.0.1:2")).to_be_visible()
    for name in ("far", "nearer", "chatty"):
        await place.store.peers.delete(name)


async def test_audit_log_filter_is_kept_in_the_address(place: Scene, page: Page) -> None:
    log = place.store.audit
    for number in range(450):  # more than the console reads for the first page
        await log.append(AuditEntry("robot", "operate", "10.0.0.9", "message.put", f"busy{number}", "done"))
    before = await log.append(AuditEntry("Ann", "admin", "10.0.0.7", "queue.delete", "gone", "done"))
    for _ in range(550):
        await log.append(
            AuditEntry("robot", "operate", "10.0.0.9", "message.put", "busy", "done"), minor=True
        )
    rows = page.get_by_role("table", name="Audit log").locator("tbody tr:not(.spacer)")
    await show(page, place.address, "audit")
    await page.keyboard.press("/")
    await page.keyboard.type("gon")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("queue.delete")
    await expect(page.get_by_text("1 entry")).to_be_visible()
    assert await axe(page) == []
    await page.reload()
    await expect(rows).to_have_count(1)
    await page.get_by_label("User").fill("unknown")
    await expect(page.get_by_text("No entry matches.")).to_be_visible()
    await page.get_by_label("User").fill("ann")
    await page.get_by_label("Action").fill("queue.")
    await expect(rows).to_have_count(1)
    year = datetime.fromtimestamp(int(before.partition("-")[0]) / 1000, UTC).year
    await page.get_by_label("From").fill(f"{year + 2}-01-01T00:00")
    await expect(page.get_by_text("No entry matches.")).to_be_visible()
    assert f"from={year + 1}-12-31" in page.url or f"from={year + 2}-01-01" in page.url
    await page.get_by_label("From").fill("")
    await page.get_by_label("To", exact=True).fill(f"{year + 2}-01-01T00:00")
    await expect(rows).to_have_count(1)


async def test_report_is_shown(place: Scene, page: Page) -> None:
    await show(page, place.address, "report")
    await expect(page.get_by_text("There is no report yet.")).to_be_visible()
    await expect(page.locator("main code")).to_have_text("python -m services.analytics")
    await give(place, reports.document(), 0)
    await page.reload()
    await expect(page.get_by_role("table", name="Recurring failures")).to_contain_text("timeout after 0 ms")
    await expect(page.locator("dl[aria-label=Totals]")).to_contain_text("99.5 %")
    await expect(page.get_by_role("figure", name="Messages per hour")).to_be_visible()
    await expect(page.locator(".bars").first).to_contain_text(re.compile("attempts.*9"))
    await page.get_by_role("table", name="Recurring failures").get_by_role("link").click()
    await expect(page).to_have_url(re.compile("queues/orders/dead/1763990000000-0"))


async def test_report_warns_about_missing_data(place: Scene, page: Page) -> None:
    """Check warnings about missing samples, a partial hour, and omitted rows."""
    document = reports.document()
    document["failures"].append({**document["failures"][0], "pattern": "", "count": 4})
    document["left_out"] = {"queues": 3, "deaths.by_origin": 1234}
    document["missing"]["late"] = 4
    await give(place, document, 1)
    await show(page, place.address, "report")
    unknown = page.get_by_role("status").filter(has_text="Incomplete data.")
    for text in (
        "15 samples trimmed",
        "2 streams deleted",
        "5 unusable records",
        "4 records arrived too late",
    ):
        await expect(unknown).to_contain_text(text)
    await expect(page.get_by_text("the last hour was not over yet")).to_be_visible()
    changes = page.get_by_role("table", name="Unusual compared to the week before")
    await expect(changes.locator("tbody tr")).to_contain_text("partial")
    hour = changes.locator("tbody td").last
    assert await hour.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "the text is cut off"
    await expect(page.locator("section", has_text="Queues").last).to_contain_text(
        "3 more are not in the report."
    )
    origins = page.locator("section", has_text="Dead letters by origin")
    await expect(origins).to_contain_text("tmq 10.0.0.1")
    await expect(origins).to_contain_text("1,234 more are not in the report.")
    budget = page.get_by_role("table", name="Error budgets").locator("tbody tr")
    await expect(budget).to_contain_text("orders")
    await expect(budget.get_by_title("The budget is spent")).to_have_text("600 %")
    failures = page.get_by_role("table", name="Recurring failures").locator("tbody tr")
    await expect(failures).to_have_count(2)
    await expect(failures.last).to_contain_text("no error text; body fingerprint 00ff00ff00ff00ff")


async def test_complete_report_has_no_warnings(place: Scene, page: Page) -> None:
    document = reports.document(missing={}, left_out={})
    document["period"]["is_running"] = False
    document["budget"]["queues"] = []
    await give(place, document, 2)
    await show(page, place.address, "report")
    await expect(page.get_by_role("table", name="Queues")).to_be_visible()
    await expect(page.get_by_text("No queue has used any of its budget.")).to_be_visible()
    for text in ("Incomplete data", "not over yet", "partial", "not in the report"):
        await expect(page.get_by_text(text)).to_have_count(0)


async def give(place: Scene, fields: dict[str, Any], later_ms: int) -> None:
    """Write a report that is newer by `later_ms`, as the store keeps the newest."""
    now_ms = reports.NOW_MS + later_ms
    text = Report.model_validate_json(json.dumps({**fields, "now_ms": now_ms})).encode()
    assert await asyncio.to_thread(write_report, place.server.url, text, now_ms)
