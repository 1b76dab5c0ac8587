"""The whole page by the keyboard."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.console.page.browsing import VIEWS, axe, settled, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
FOCUSED = "document.activeElement.textContent.trim()"
LETTERS = dict(
    zip("oqdjecrpsvta", [each for each in VIEWS if "/" not in each and each != "config"], strict=True)
)


async def at(page: Page, name: str) -> None:
    """The keyboard is at this queue."""
    await expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()


async def test_g_and_a_letter_go_to_a_view(place: Scene, page: Page) -> None:
    await show(page, place.address, "config")
    for letter, route in LETTERS.items():
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        await expect(page.locator("main h1")).to_have_text(VIEWS[route])
        await expect(page.locator("main h1")).to_be_focused()
    await settled(page)


async def test_down_leads_from_the_filter_to_what_it_lets_through(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.keyboard.press("/")
    await page.keyboard.type("orders")
    await page.keyboard.press("ArrowDown")
    await at(page, "orders")
    await page.keyboard.press("ArrowDown")
    await at(page, "orders/eu")
    await page.keyboard.press("/")
    await page.keyboard.type("nothing has this name")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_label("Filter by name")).to_be_focused()


async def test_letters_are_letters_where_somebody_types(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.keyboard.press("/")
    await page.keyboard.type("gq?/")
    await expect(page.get_by_label("Filter by name")).to_have_value("gq?/")
    await expect(page.locator("dialog")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Filter by name")).not_to_be_focused()


async def test_arrows_move_in_a_table_and_enter_opens(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.get_by_label("Filter by name").focus()
    while await page.evaluate(FOCUSED) != "archive":
        await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    await at(page, "invoices")
    await page.keyboard.press("j")
    await at(page, "orders")
    await page.keyboard.press("k")
    await page.keyboard.press("End")
    await at(page, "sensors")
    await page.keyboard.press("ArrowDown")
    await at(page, "sensors")
    await page.keyboard.press("Home")
    await page.keyboard.press("Enter")
    await expect(page.locator("main h1")).to_have_text("archive")


async def test_g_and_j_go_to_the_jobs_from_a_table_too(place: Scene, page: Page) -> None:
    """Where `j` alone is the next row."""
    await show(page, place.address, "queues")
    await page.get_by_role("link", name="archive").focus()
    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await expect(page.locator("main h1")).to_have_text("Jobs")


async def test_space_selects_a_letter(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/returns/dead")
    first = page.get_by_role("table", name="Dead letters").locator("tbody tr").first
    await first.get_by_role("link").focus()
    await page.keyboard.press("Space")
    await expect(first.get_by_role("checkbox")).to_be_checked()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Space")
    await expect(page.get_by_text("2 dead letters selected")).to_be_visible()


async def test_a_dialog_keeps_the_focus_and_gives_it_back(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/orders")
    await page.get_by_role("button", name="Publish").focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Body")).to_be_focused()
    for _ in range(12):
        await page.keyboard.press("Tab")
        inside = (
            "document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"
        )
        assert await page.evaluate(inside)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Publish")).to_be_focused()


async def test_help_tells_the_keys(place: Scene, page: Page) -> None:
    await show(page, place.address, "overview")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_contain_text("focus the filter")
    assert await axe(page) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_the_content_is_one_key_away(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.reload()
    await settled(page)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    assert page.url.endswith("#/queues")
