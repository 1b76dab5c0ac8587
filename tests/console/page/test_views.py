"""Every view on live data: it is there, it complains of nothing, axe finds nothing, and it fits a telephone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.console.page.looking import DASH, VIEWS, axe, settled, show
from tests.console.page.scene import DEAD, Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
TABLES = (
    "queues",
    "queues/returns/dead",
    "dead",
    "jobs",
    "edges",
    "connections",
    "ring",
    "peers",
    "audit",
    "config",
)


async def test_every_view_is_reached_by_its_link(place: Scene, page: Page) -> None:
    await show(page, place.address, "overview")
    ways = page.locator("nav[aria-label=Views] a")
    titles = [
        title.strip() for title in await ways.evaluate_all("all => all.map(each => each.firstChild.data)")
    ]
    assert titles == [heading for route, heading in VIEWS.items() if "/" not in route]
    for title in titles:
        await page.get_by_role("navigation", name="Views").get_by_role("link", name=title).click()
        await expect(page.locator("main h1")).to_have_text(title)
        await expect(page).to_have_title(f"{title} {DASH} Penstock")
        await settled(page)
        await expect(page.locator("main .problem")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(place: Scene, page: Page, scheme: str) -> None:
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    found = {}
    for route in VIEWS:
        await show(page, place.address, route)
        found[route] = await axe(page)
    assert {route: each for route, each in found.items() if each} == {}


@pytest.mark.parametrize("route", VIEWS)
async def test_a_view_fits_400_pixels(place: Scene, page: Page, route: str) -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    await show(page, place.address, route)
    assert await page.evaluate("document.documentElement.scrollWidth") == 400


async def test_no_column_is_too_narrow_to_be_read(place: Scene, page: Page) -> None:
    api = f"{place.address}api/v1/queues"
    await page.request.post(f"{api}/invoices/messages", data={"body": "audited"})
    await page.request.post(f"{api}/returns/dead/redrive", data={"ids": ["1-1"], "target": "orders"})
    columns = "[...document.querySelectorAll('table.rows thead th')].filter((each) => each.offsetParent)"
    narrow = f"{columns}.filter((each) => each.textContent && each.offsetWidth < 48).map((each) => each.textContent)"
    found = {}
    for route in TABLES:
        await show(page, place.address, route)
        await expect(page.locator("table.rows").first).to_be_visible()
        for width in (400, 1280, 1500):
            await page.set_viewport_size({"width": width, "height": 800})
            found[route, width] = await page.evaluate(narrow)
            assert await page.evaluate("document.documentElement.scrollWidth") == width, route
    assert {where: each for where, each in found.items() if each} == {}


OPENED = {  # at 400 px: what has no column there
    "edges": ("Listens on", "Process", "Host", "Up for"),
    "connections": ("Id", "Process", "unsentOctets", "Through"),
    "ring": ("Predecessor", "Goes by", "Heard"),
    "audit": ("Who", "Outcome", "From"),
}


@pytest.mark.parametrize("route", OPENED)
async def test_what_has_no_column_is_below_the_row(place: Scene, page: Page, route: str) -> None:
    await page.request.post(f"{place.address}api/v1/queues/invoices/messages", data={"body": "audited"})
    await page.set_viewport_size({"width": 400, "height": 800})
    await show(page, place.address, route)
    more = page.get_by_role("button", name="More of this row").first
    await more.click()
    opened = page.locator("tr.opened")
    for name in OPENED[route]:
        await expect(opened.locator("dt", has_text=name)).to_be_visible()
    assert await axe(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") == 400
    await page.set_viewport_size({"width": 2400, "height": 800})
    columns = [each.strip() for each in await page.locator("thead th").all_text_contents()]
    for name in set(OPENED[route]) & set(columns):
        await expect(opened.locator("dt", has_text=name)).to_be_hidden()
    await page.set_viewport_size({"width": 400, "height": 800})
    await more.click()
    await expect(opened).to_have_count(0)


async def test_axe_finds_nothing_on_a_telephone(place: Scene, page: Page) -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    await show(page, place.address, "queues")
    assert await axe(page) == []
    await page.get_by_role("button", name="Menu").click()
    await expect(page.get_by_role("link", name="Edges")).to_be_visible()
    assert await axe(page) == []
    await page.get_by_role("link", name="Edges").click()
    await expect(page.get_by_role("link", name="Jobs")).to_be_hidden()


async def test_the_overview_lives(place: Scene, page: Page) -> None:
    await show(page, place.address, "overview")
    put = page.locator("dl[aria-label=Now] > div", has_text="in / s").locator("dd")
    await expect(put).not_to_have_text("0")
    await expect(put).not_to_have_text(DASH)
    await expect(page.locator(".wanting li", has_text="returns")).to_contain_text(f"{DEAD} dead letters")
    await expect(page.locator(".wanting li", has_text="archive")).to_contain_text("paused")
    await expect(page.get_by_role("table", name="Busiest queues").locator("tbody tr").first).to_contain_text(
        "orders"
    )
    await expect(page.locator(".processes li")).to_have_count(len(place.edges))


async def test_the_ring_is_drawn(place: Scene, page: Page) -> None:
    await show(page, place.address, "ring")
    picture = page.get_by_role("img", name="Ring of group 7")
    await expect(picture.locator("g.node")).to_have_count(3)
    await expect(picture.locator("path.link")).to_have_count(3)
    await expect(picture.locator("g.leads")).to_have_count(1)
    await expect(page.get_by_role("table", name="Nodes of group 7").get_by_text("leader")).to_have_count(1)


async def test_an_address_that_names_nothing_says_so(place: Scene, page: Page) -> None:
    await show(page, place.address, "nonsense/%zz", "There is no such page")
    await show(page, place.address, "constructor", "There is no such page")  # every object has one
    await page.get_by_role("link", name="To the overview").click()
    await expect(page.locator("main h1")).to_have_text("Overview")


async def test_light_and_dark_are_as_the_system_has_it_or_as_chosen(place: Scene, page: Page) -> None:
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
