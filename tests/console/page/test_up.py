"""Everything that `penstock up` starts, in one walk: traffic of every protocol, and each view shows what is of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from services.store.report.report import Report
from services.store.report.reports import write_report
from tests import reports
from tests.console.page.conftest import MODULE
from tests.console.page.everything import HELD, QUEUES, Everything
from tests.console.page.everything import everything as started
from tests.console.page.looking import VIEWS, axe, show
from tests.console.page.traffic import Traffic
from tests.live import until
from tests.rqp.mca.client import Client as McaClient

pytestmark = pytest.mark.asyncio(loop_scope="module")
EMPTY_ELSEWHERE = ("jobs", "reservations", "connections", "ring", "report", "audit")
SHOWN = {  # what stands in each view of what goes on
    "overview": r"\d+ dead letters.*sensors.*rqp",
    "queues": r"cast.*held.*invoices.*orders.*passed.*returns.*sensors.*to invoices.*rqp-mca",
    "queues/orders": r"TMQ.*orders",
    "queues/orders/messages": r'"order"',
    "queues/returns/dead": r"rejected_full.*return \d",
    "queues/orders/document": r"kind: Queue",
    "dead": r"returns.*\d\d",
    "jobs": r"returns.*passed.*redrive.*running",
    "edges": r"pubsub.*ring.*rqp.*tmq",
    "connections": r"mca",
    "ring": r"Group 1.*127\.0\.0\.1",
    "peers": r"warehouse.*rqp-mca",
    "peers/warehouse": r"kind: Peer.*to invoices.*rqp",
    "subscriptions": r"plant\.boiler\*",
    "reservations": r"held.*127\.0\.0\.1",
    "report": r"timeout after",
    "audit": r"dead\.redrive.*returns",
    "config": r"console\.",
}


@pytest_asyncio.fixture(**MODULE)
async def everything(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Everything]:
    async with started(tmp_path_factory.mktemp("up")) as made:
        yield made


async def put_over_mca(everything: Everything) -> None:
    """A remote queue leads to this very edge, over the wire."""
    for number in range(3):
        await everything.ask("POST", "queues/to%20invoices/messages", {"body": f"invoice {number}"}, 201)
    await until(lambda: everything.has("invoices", ready=3))


async def redrive_slowly(everything: Everything) -> None:
    """It is under way as long as anybody looks here."""
    said = {"all": True, "target": "passed", "rate": 1}
    await everything.ask("POST", "queues/returns/dead/redrive", said, 202)


async def test_every_view_shows_what_everybody_does(everything: Everything, page: Page) -> None:
    await everything.declare(QUEUES)
    traffic = Traffic(everything.place("tmq", "document"), everything.place("pubsub", "text"))
    holder = await McaClient.connect(everything.place("rqp", "mca"))
    async with traffic:
        await holder.request(HELD)
        await everything.let_die()
        await put_over_mca(everything)
        await everything.put_by_cast()  # by now this edge has heard of all queues
        await redrive_slowly(everything)
        text = Report.model_validate_json(json.dumps(reports.document())).encode()
        assert await asyncio.to_thread(write_report, everything.url, text, reports.NOW_MS)
        await until(lambda: everything.has("sensors", ready=1))
        found = {}
        for route in VIEWS:
            for width, scheme in ((1280, "light"), (400, "dark")):
                await page.set_viewport_size({"width": width, "height": 800})
                await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                await show(page, everything.address, route)
                await expect(page.locator("main")).to_contain_text(re.compile(SHOWN[route], re.DOTALL))
                if width == 400 or route in EMPTY_ELSEWHERE:  # the rest is looked at in test_views
                    found[route, width] = await axe(page)
                assert await page.evaluate("document.documentElement.scrollWidth") == width, route
    holder.close()
    assert {where: each for where, each in found.items() if each} == {}
