"""Test the page by keyboard."""

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
    """Check that the link of this queue has the focus."""
    await expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()


async def test_g_and_a_letter_open_a_view(place: Scene, page: Page) -> None:
    await show(page, place.address, "config")
    for letter, route in LETTERS.items():
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        await expect(page.locator("main h1")).to_have_text(VIEWS[route])
        await expect(page.locator("main h1")).to_be_focused()
    await settled(page)


async def test_arrow_down_moves_from_the_filter_to_the_first_row(place: Scene, page: Page) -> None:
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


async def test_shortcuts_do_not_apply_in_input_fields(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.keyboard.press("/")
    await page.keyboard.type("gq?/")
    await expect(page.get_by_label("Filter by name")).to_have_value("gq?/")
    await expect(page.locator("dialog")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Filter by name")).not_to_be_focused()


async def test_arrows_move_between_rows_and_enter_opens(place: Scene, page: Page) -> None:
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


async def test_g_and_j_open_jobs_from_a_table(place: Scene, page: Page) -> None:
    """Check that `g j` opens jobs from a table, where `j` alone moves to the next row."""
    await show(page, place.address, "queues")
    await page.get_by_role("link", name="archive").focus()
    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await expect(page.locator("main h1")).to_have_text("Jobs")


async def test_space_selects_a_row(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/returns/dead")
    first = page.get_by_role("table", name="Dead letters").locator("tbody tr").first
    await first.get_by_role("link").focus()
    await page.keyboard.press("Space")
    await expect(first.get_by_role("checkbox")).to_be_checked()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Space")
    await expect(page.get_by_text("2 dead letters selected")).to_be_visible()


async def test_dialog_keeps_the_focus_and_returns_it(place: Scene, page: Page) -> None:
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


async def test_help_lists_shortcuts(place: Scene, page: Page) -> None:
    await show(page, place.address, "overview")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_contain_text("focus the filter")
    assert await axe(page) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_skip_link_focuses_the_content(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.reload()
    await settled(page)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    assert page.url.endswith("#/queues")
