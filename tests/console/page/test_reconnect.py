"""Test outages of the console and of the store."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.console.page.browsing import axe, settled, show
from tests.console.page.scene import Scene
from tests.live import until

PEERS_ARE_THERE = """async () => {
    const found = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("views/peers.js"));
    return Boolean(found && (await import(found.name))); // and its imports
}"""
AWAY = re.compile(r"Failed to load resource: the server responded with a status of 50[34]")
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_page_reconnects_after_a_console_restart(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await until(lambda: page.evaluate(PEERS_ARE_THERE))
    await place.end_console()
    await expect(page.get_by_text("Connection to the console lost")).to_be_visible()
    await expect(page.locator(".link")).to_have_text("Offline")
    head = await page.locator(".brand").bounding_box()
    assert head is not None
    assert head["height"] < 60  # name and badge are on one line
    await expect(page.get_by_role("link", name="orders/eu")).to_be_visible()  # known data are still shown
    assert await axe(page) == []
    await place.store.catalogue.declare(
        "new since then", (await place.store.catalogue.find("orders")).spec, "test"
    )
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Peers").click()
    await expect(page.get_by_role("alert").first).to_contain_text("The console does not answer")
    await place.restart()
    await expect(page.get_by_text("Connection to the console lost")).to_have_count(0)
    await expect(page.get_by_role("link", name="warehouse")).to_be_visible()
    await expect(page.locator("main .problem")).to_have_count(0)
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Queues").click()
    await expect(page.get_by_role("link", name="new since then")).to_be_visible()
    await place.store.catalogue.delete(await place.store.catalogue.find("new since then"))
    await expect(page.get_by_role("link", name="new since then")).to_have_count(0)


async def test_view_not_loaded_before_an_outage_loads_after_it(place: Scene, page: Page) -> None:
    await page.route("**/views/peers.js", lambda route: route.abort())
    await show(page, place.address, "overview")
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Peers").click()
    await expect(page.get_by_text("Loading…")).to_be_visible()
    await place.end_console()
    await expect(page.get_by_text("Connection to the console lost")).to_be_visible()
    await place.restart()  # the browser remembers the failure under that name
    await expect(page.get_by_role("link", name="warehouse")).to_be_visible()
    await expect(page.locator("main h1")).to_have_text("Peers")


async def test_unresponsive_store_shows_a_banner(place: Scene, page: Page, complaints: list[str]) -> None:
    """Check that an unresponsive store shows a banner; the browser also logs requests that fail meanwhile."""
    await show(page, place.address, "overview")
    place.server.stop()
    try:
        await expect(page.get_by_text("The console cannot read the store.")).to_be_visible()
        await expect(page.locator(".link")).to_have_text("No store")
        assert await axe(page) == []
    finally:
        place.server.cont()
    await expect(page.get_by_text("The console cannot read the store.")).to_have_count(0)
    await settled(page)
    complaints[:] = [each for each in complaints if not AWAY.match(each)]
