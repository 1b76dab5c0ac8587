"""Test every view on live data: content, accessibility (axe) and layout from a telephone to a wide screen."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from playwright.async_api import Page, expect

from services.store import QueueSpec
from services.store.report.report import Report
from services.store.report.reports import write_report
from tests import reports
from tests.console.page.browsing import DASH, VIEWS, axe, settled, show
from tests.console.page.scene import DEAD, Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHOWN = {  # text in each view from the scene
    "overview": r"\d+ dead letters",
    "queues": r"archive.*held.*invoices.*orders.*orders/eu.*returns.*sensors",
    "queues/orders": r"TMQ.*orders",
    "queues/orders/messages": r'"order"',
    "queues/returns/dead": r"rejected_full.*return",
    "queues/orders/document": r"kind: Queue",
    "dead": r"returns.*\d\d",
    "jobs": r"returns.*redrive.*running",
    "edges": r"(?=.*pubsub)(?=.*ring)(?=.*tmq)(?=.*ready).*127\.0\.0\.1:\d+",
    "connections": r"tmq",
    "ring": r"Group 7.*127\.0\.0\.1",
    "peers": r"warehouse.*rqp-mca",
    "peers/warehouse": r"kind: Peer",
    "subscriptions": r"plant\.boiler\*",
    "reservations": r"held.*holder",
    "report": r"timeout after",
    "audit": r"dead\.redrive.*returns",
    "config": r"console\.",
}
WIDTH = "document.documentElement.scrollWidth"
NARROW = """[...document.querySelectorAll('table.rows thead th')]
    .filter((each) => each.offsetParent && each.textContent && each.offsetWidth < 48)
    .map((each) => each.textContent)"""


async def give_each_view_something(place: Scene, page: Page) -> None:
    """Create a reservation, a job that takes a minute, and a report."""
    held, _ = await place.store.catalogue.declare("held", QueueSpec(), "test")
    await place.store.open_domain(held.domain).claims.reserve(held, "holder", 600_000)
    slow = {"all": True, "target": "orders/eu", "rate": 1}
    answer = await page.request.post(f"{place.address}api/v1/queues/returns/dead/redrive", data=slow)
    assert answer.status == 202
    text = Report.model_validate_json(json.dumps(reports.document())).encode()
    assert await asyncio.to_thread(write_report, place.server.url, text, reports.NOW_MS)


async def go(place: Scene, page: Page, route: str) -> None:
    """Follow the sidebar's link, if the view has one."""
    if "/" in route:
        await show(page, place.address, route)
        return
    title = VIEWS[route]
    await page.get_by_role("navigation", name="Views").get_by_role("link", name=title).click()
    await expect(page.locator("main h1")).to_have_text(title)
    await expect(page).to_have_title(f"{title} {DASH} Penstock")
    await settled(page)


async def test_views_show_data_and_are_accessible_at_all_widths(place: Scene, page: Page) -> None:
    await give_each_view_something(place, page)
    await show(page, place.address, "overview")
    links = page.locator("nav[aria-label=Views] a")
    titles = await links.evaluate_all("all => all.map(each => each.firstChild.data.trim())")
    assert titles == [heading for route, heading in VIEWS.items() if "/" not in route]
    faults = {}
    for route in VIEWS:
        await page.set_viewport_size({"width": 1280, "height": 800})
        await page.emulate_media(color_scheme="light")
        await go(place, page, route)
        await expect(page.locator("main")).to_contain_text(re.compile(SHOWN[route], re.DOTALL))
        await expect(page.locator("main .problem")).to_have_count(0)
        faults[route, "light"] = await axe(page)
        for width in (1280, 400):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate(WIDTH) == width, route
            if route != "report":  # some of its columns have room for a few letters there
                faults[route, f"too narrow at {width} px"] = await page.evaluate(NARROW)
        await page.emulate_media(color_scheme="dark")
        faults[route, "dark, on a telephone"] = await axe(page)
    assert {where: each for where, each in faults.items() if each} == {}
    await place.reset()


OPENED = {  # at 400 px: fields without a column there
    "edges": ("Listens on", "Process", "Host", "Up for"),
    "connections": ("ID", "Process", "Not yet sent", "Listener"),
    "ring": ("Predecessor", "Leader", "Reported"),
    "audit": ("User", "Outcome", "Address"),
}


async def test_hidden_columns_are_in_the_row_details(place: Scene, page: Page) -> None:
    await page.request.post(f"{place.address}api/v1/queues/invoices/messages", data={"body": "audited"})
    for route, names in OPENED.items():
        await page.set_viewport_size({"width": 400, "height": 800})
        await show(page, place.address, route)
        more = page.get_by_role("button", name="Details of this row").first
        await more.click()
        opened = page.locator("tr.opened")
        for name in names:
            await expect(opened.locator("dt", has_text=name)).to_be_visible()
        assert await axe(page) == []
        assert await page.evaluate(WIDTH) == 400
        await page.set_viewport_size({"width": 2400, "height": 800})
        columns = [each.strip() for each in await page.locator("thead th").all_text_contents()]
        for name in set(names) & set(columns):
            await expect(opened.locator("dt", has_text=name)).to_be_hidden()
        await page.set_viewport_size({"width": 400, "height": 800})
        await more.click()
        await expect(opened).to_have_count(0)


async def test_menu_on_narrow_screens(place: Scene, page: Page) -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    await show(page, place.address, "queues")
    await page.get_by_role("button", name="Menu").click()
    await expect(page.get_by_role("link", name="Edges")).to_be_visible()
    assert await axe(page) == []
    await page.get_by_role("link", name="Edges").click()
    await expect(page.get_by_role("link", name="Jobs")).to_be_hidden()


async def test_overview_is_live(place: Scene, page: Page) -> None:
    await show(page, place.address, "overview")
    put = page.locator("dl[aria-label=Now] > div", has_text="In/s").locator("dd")
    await expect(put).not_to_have_text("0")
    await expect(put).not_to_have_text(DASH)
    await expect(page.locator(".attention li", has_text="returns")).to_contain_text(f"{DEAD} dead letters")
    await expect(page.locator(".attention li", has_text="archive")).to_contain_text("Paused")
    await expect(page.get_by_role("table", name="Busiest queues").locator("tbody tr").first).to_contain_text(
        "orders"
    )
    await expect(page.locator(".processes li")).to_have_count(len(place.edges))


async def test_ring_diagram(place: Scene, page: Page) -> None:
    await show(page, place.address, "ring")
    picture = page.get_by_role("img", name="Ring of group 7")
    await expect(picture.locator("g.node")).to_have_count(3)
    await expect(picture.locator("path.link")).to_have_count(3)
    await expect(picture.locator("g.leads")).to_have_count(1)
    await expect(
        page.get_by_role("table", name="Nodes of group 7").get_by_text("leader", exact=True)
    ).to_have_count(1)


async def test_unknown_address(place: Scene, page: Page) -> None:
    await show(page, place.address, "nonsense/%zz", "Page not found")
    # a property of every object in JavaScript
    await show(page, place.address, "constructor", "Page not found")
    await page.goto(f"{place.address}#/queues/missing")
    await expect(page.get_by_role("alert")).to_contain_text("missing")
    await show(page, place.address, "nonsense", "Page not found")
    await page.get_by_role("link", name="Go to the overview").click()
    await expect(page.locator("main h1")).to_have_text("Overview")


async def test_theme_follows_the_system_or_the_choice(place: Scene, page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    await page.emulate_media(color_scheme="dark")
    await show(page, place.address, "overview")
    dark = await page.evaluate(ground)
    await page.get_by_role("button", name="light").click()
    light = await page.evaluate(ground)
    assert light != dark
    await page.reload()
    await settled(page)
    assert await page.evaluate(ground) == light
    await page.get_by_role("button", name="system").click()
    assert await page.evaluate(ground) == dark
