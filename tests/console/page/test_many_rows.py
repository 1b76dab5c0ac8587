"""Test tables with many rows."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.console.page.browsing import axe, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 300
MOST_ROWS = 80  # in the page at a time


async def test_only_visible_rows_are_rendered(place: Scene, page: Page) -> None:
    spec = (await place.store.catalogue.find("orders")).spec
    for first in range(0, MANY, 50):
        await asyncio.gather(
            *(
                place.store.catalogue.declare(f"z{number:04}", spec, "test")
                for number in range(first, first + 50)
            )
        )
    await show(page, place.address, "queues")
    table = page.get_by_role("table", name="Queues")
    rows = table.locator("tbody tr:not(.spacer)")
    await expect(table).to_have_attribute("aria-rowcount", str(MANY + 10))
    assert await rows.count() <= MOST_ROWS
    await rows.first.get_by_role("link").first.focus()
    await page.keyboard.press("End")
    await expect(page.get_by_role("link", name="z0299")).to_be_focused()
    await expect(page.get_by_role("link", name="z0299")).to_be_in_viewport()
    assert await rows.count() <= MOST_ROWS
    assert await axe(page) == []
    await page.keyboard.press("PageUp")
    await expect(page.get_by_role("link", name="z0284")).to_be_focused()
    await page.keyboard.press("Home")
    await expect(page.get_by_role("link", name="archive")).to_be_focused()
    for _ in range(70):  # below the last drawn row
        await page.keyboard.press("ArrowDown")
    where = "document.activeElement.closest('tr')?.dataset.index"
    assert await page.evaluate(where) == "70"
    await page.keyboard.press("Home")
    await expect(page.get_by_role("link", name="archive")).to_be_focused()
    await page.mouse.wheel(0, 6_000)
    await expect(page.get_by_role("link", name="z0170")).to_be_attached()
    await page.set_viewport_size({"width": 400, "height": 800})
    widths = "[...document.querySelectorAll('table.rows thead th')].map((each) => each.offsetWidth)"
    assert sum(await page.evaluate(widths)) == await page.evaluate(
        "document.querySelector('table.rows').offsetWidth"
    )
    await page.keyboard.press("/")
    await page.keyboard.type("z012")
    await expect(rows).to_have_count(10)
