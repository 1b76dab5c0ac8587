"""Dead letters by hand: found, looked at in three ways, brought back, removed; and what is in them stays text."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.console.page.looking import axe, settled, show
from tests.console.page.scene import DEAD, LONG_NUMBER, SCRIPT, Scene
from tests.live import until

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROUTE = "queues/returns/dead"


def letters(page: Page) -> Locator:
    return page.get_by_role("table", name="Dead letters").locator("tbody tr:not(.spacer)")


async def stats(place: Scene, name: str) -> dict[str, int]:
    return await place.store.listing.stats(await place.store.catalogue.find(name))


async def test_bodies_are_text_json_and_hex(place: Scene, page: Page) -> None:
    await show(page, place.address, ROUTE)
    assert await axe(page) == []
    await letters(page).nth(0).get_by_role("link").click()
    body = page.locator(".body pre")
    await expect(body).to_have_text(SCRIPT.decode())
    assert "owned" not in await page.title()
    assert await page.locator("main img, main script").count() == 0
    await page.get_by_role("button", name="Hex").click()
    await expect(body).to_contain_text("00000000  3c 69 6d 67 20 73 72 63  3d")
    await page.get_by_role("button", name="JSON").click()
    await expect(page.locator(".body")).to_contain_text("This is no JSON")
    await page.go_back()
    await letters(page).nth(1).get_by_role("link").click()
    await expect(body).to_contain_text('"order": 12345678901234567890,')
    await expect(body).to_contain_text('"note": "café"')
    assert await axe(page) == []
    await page.get_by_role("button", name="Text").click()
    await expect(body).to_have_text(LONG_NUMBER.decode())
    await page.go_back()
    await letters(page).nth(2).get_by_role("link").click()
    await expect(body).to_contain_text("20 21 22 23")


async def test_a_letter_tells_its_story_and_is_downloaded(place: Scene, page: Page) -> None:
    await show(page, place.address, ROUTE)
    await letters(page).nth(2).get_by_role("link").click()
    await expect(page.get_by_role("heading", name="rejected_full")).to_be_visible()
    await expect(page.get_by_role("list", name="History").locator("li")).to_have_text(
        [re.compile("put in"), re.compile("died")]
    )
    await expect(page.locator("table.plain")).to_contain_text("kind")
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download").click()
    file = await (await started.value).path()
    assert file.read_bytes() == bytes(range(64))


async def test_letters_are_filtered_in_the_address(place: Scene, page: Page) -> None:
    await show(page, place.address, ROUTE)
    await expect(letters(page)).to_have_count(DEAD)
    await page.keyboard.press("/")
    await page.keyboard.type('return": 1\\d')
    await expect(letters(page)).to_have_count(10)
    assert "body=" in page.url
    await page.reload()
    await expect(letters(page)).to_have_count(10)
    await page.get_by_label("Reason").fill("expired")
    await expect(page.get_by_text("No dead letter matches.")).to_be_visible()
    await page.get_by_label("Reason").fill("rejected_full")
    await page.get_by_label("Dead for at least").fill("nonsense")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Dead for at least").fill("")
    await page.get_by_label("Body matches").fill("(")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Body matches").fill("")
    await expect(letters(page)).to_have_count(DEAD)


async def test_selected_ones_are_redriven_after_a_preview(place: Scene, page: Page) -> None:
    before = (await stats(place, "invoices"))["ready"]
    await show(page, place.address, ROUTE)
    for number in (3, 4):
        await letters(page).nth(number).get_by_role("checkbox").check()
    await expect(page.get_by_text("2 letters selected")).to_be_visible()
    await page.get_by_role("button", name="Redrive…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("alert")).to_contain_text("queue 'returns' takes nothing now")
    await expect(dialog.get_by_role("button", name="Redrive")).to_be_disabled()
    await dialog.get_by_label("Into").fill("nowhere")
    await expect(dialog.get_by_role("alert")).to_contain_text("nowhere")
    await dialog.get_by_label("Into").fill("invoices")
    await expect(dialog).to_contain_text("2 rejected_full")
    await dialog.get_by_label("All of this queue").check()
    await expect(dialog).to_contain_text(f"{DEAD} dead letters would go back")
    await dialog.get_by_label("The 2 that are selected").check()
    await expect(dialog).to_contain_text("2 dead letters would go back to the end of invoices")
    assert await axe(page) == []
    assert (await stats(place, "returns"))["dead_letters"] == DEAD, "a preview moves nothing"
    await dialog.get_by_role("button", name="Redrive 2").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("link", name="How far").click()
    job = page.get_by_role("table", name="Jobs").locator("tbody tr").first
    await expect(job).to_contain_text("done")
    await expect(job).to_contain_text("invoices")
    assert (await stats(place, "invoices"))["ready"] == before + 2
    assert (await stats(place, "returns"))["dead_letters"] == DEAD - 2


async def test_a_slow_redrive_is_cancelled(place: Scene, page: Page) -> None:
    await show(page, place.address, f"{ROUTE}?body=return", "returns")
    await page.get_by_role("button", name="Redrive…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Into").fill("orders/eu")
    await dialog.get_by_label("At most, a second").fill("1")
    await dialog.get_by_role("button", name=re.compile(r"Redrive \d")).click()
    await expect(dialog).to_have_count(0)
    await show(page, place.address, "jobs")
    jobs = page.get_by_role("table", name="Jobs").locator("tbody tr")
    await expect(jobs.first.get_by_role("progressbar")).to_be_visible()
    for cell in await jobs.first.locator("th, td").all():
        assert await cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "it is cut off"
    await jobs.first.get_by_role("button", name="Cancel").click()
    await expect(jobs.first).to_contain_text("cancelled")


async def test_a_purge_asks_for_the_name(place: Scene, page: Page) -> None:
    left = (await stats(place, "returns"))["dead_letters"]
    await show(page, place.address, ROUTE)
    await letters(page).last.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 dead letter would be removed")
    button = dialog.get_by_role("button", name="Remove them for good")
    await expect(button).to_be_disabled()
    assert await axe(page) == []
    await dialog.get_by_role("textbox").fill("return")
    await expect(button).to_be_disabled()
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(1)
    await dialog.get_by_role("textbox").fill("returns")
    await button.click()
    await expect(dialog).to_have_count(0)
    await until(lambda: has_so_many(place, left - 1))
    await settled(page)


async def has_so_many(place: Scene, dead: int) -> bool:
    return (await stats(place, "returns"))["dead_letters"] == dead


async def test_only_queues_with_dead_letters_are_listed(place: Scene, page: Page) -> None:
    await show(page, place.address, "dead")
    rows = page.get_by_role("table", name="Queues with dead letters").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("link").click()
    await expect(page.locator("main h1")).to_have_text("returns")
    await expect(letters(page).first).to_be_visible()
