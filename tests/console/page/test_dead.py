"""Test the views of dead letters: filter, show, redrive and purge."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.console.page.browsing import axe, settled, show
from tests.console.page.scene import DEAD, LONG_NUMBER, SCRIPT, Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROUTE = "queues/returns/dead"


def letters(page: Page) -> Locator:
    return page.get_by_role("table", name="Dead letters").locator("tbody tr:not(.spacer)")


async def test_bodies_as_text_json_and_hex(place: Scene, page: Page) -> None:
    await show(page, place.address, ROUTE)
    await letters(page).nth(0).get_by_role("link").click()
    body = page.locator(".body pre")
    await expect(body).to_have_text(SCRIPT.decode())
    assert "owned" not in await page.title()
    assert await page.locator("main img, main script").count() == 0
    await page.get_by_role("button", name="Hex").click()
    await expect(body).to_contain_text("00000000  3c 69 6d 67 20 73 72 63  3d")
    await page.get_by_role("button", name="JSON").click()
    await expect(page.locator(".body")).to_contain_text("The body is not valid JSON")
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


async def test_dead_letter_shows_its_history_and_is_downloaded(place: Scene, page: Page) -> None:
    await show(page, place.address, ROUTE)
    await letters(page).nth(2).get_by_role("link").click()
    await expect(page.get_by_role("heading", name="rejected_full")).to_be_visible()
    await expect(page.get_by_role("list", name="History").locator("li")).to_have_text(
        [re.compile("published"), re.compile("died")]
    )
    await expect(page.locator("table.plain")).to_contain_text("kind")
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download").click()
    file = await (await started.value).path()
    assert file.read_bytes() == bytes(range(64))


async def test_dead_letter_filter_is_kept_in_the_address(place: Scene, page: Page) -> None:
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
    await page.get_by_label("Died at least … ago").fill("nonsense")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Died at least … ago").fill("")
    await page.get_by_label("Body matches").fill("(")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Body matches").fill("")
    await expect(letters(page)).to_have_count(DEAD)


async def test_redrive_of_selected_dead_letters(place: Scene, page: Page) -> None:
    before = (await place.stats("invoices"))["ready"]
    await show(page, place.address, ROUTE)
    for number in (3, 4):
        await letters(page).nth(number).get_by_role("checkbox").check()
    await expect(page.get_by_text("2 dead letters selected")).to_be_visible()
    await page.get_by_role("button", name="Redrive…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("alert")).to_contain_text(
        "target queue 'returns' does not accept messages"
    )
    await expect(dialog.get_by_role("button", name="Redrive")).to_be_disabled()
    await dialog.get_by_label("Target queue").fill("missing")
    await expect(dialog.get_by_role("alert")).to_contain_text("missing")
    await dialog.get_by_label("Target queue").fill("invoices")
    await expect(dialog).to_contain_text("2 rejected_full")
    await dialog.get_by_label("All dead letters of this queue").check()
    await expect(dialog).to_contain_text(f"{DEAD} dead letters will be moved")
    await dialog.get_by_label("The 2 selected dead letters").check()
    await expect(dialog).to_contain_text("2 dead letters will be moved to the end of invoices")
    assert await axe(page) == []
    assert (await place.stats("returns"))["dead_letters"] == DEAD, "a preview moves nothing"
    await dialog.get_by_role("button", name="Redrive 2").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("link", name="Progress").click()
    job = page.get_by_role("table", name="Jobs").locator("tbody tr").first
    await expect(job).to_contain_text("done")
    await expect(job).to_contain_text("invoices")
    assert (await place.stats("invoices"))["ready"] == before + 2
    assert (await place.stats("returns"))["dead_letters"] == DEAD - 2


async def test_redrive_is_cancelled(place: Scene, page: Page) -> None:
    await show(page, place.address, f"{ROUTE}?body=return", "returns")
    await page.get_by_role("button", name="Redrive…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Target queue").fill("orders/eu")
    await dialog.get_by_label("Rate limit").fill("1")
    await dialog.get_by_role("button", name=re.compile(r"Redrive \d")).click()
    await expect(dialog).to_have_count(0)
    await show(page, place.address, "jobs")
    jobs = page.get_by_role("table", name="Jobs").locator("tbody tr")
    await expect(jobs.first.get_by_role("progressbar")).to_be_visible()
    for cell in await jobs.first.locator("th, td").all():
        assert await cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "the text is cut off"
    await jobs.first.get_by_role("button", name="Cancel").click()
    await expect(jobs.first).to_contain_text("cancelled")


async def test_purge_requires_the_queue_name(place: Scene, page: Page) -> None:
    left = (await place.stats("returns"))["dead_letters"]
    await show(page, place.address, ROUTE)
    await letters(page).last.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 dead letter will be permanently deleted")
    button = dialog.get_by_role("button", name="Purge dead letters")
    await expect(button).to_be_disabled()
    assert await axe(page) == []
    await dialog.get_by_role("textbox").fill("return")
    await expect(button).to_be_disabled()
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(1)
    await dialog.get_by_role("textbox").fill("returns")
    await button.click()
    await expect(dialog).to_have_count(0)
    await place.are_dead("returns", left - 1)
    await settled(page)


async def test_list_of_queues_with_dead_letters(place: Scene, page: Page) -> None:
    await show(page, place.address, "dead")
    rows = page.get_by_role("table", name="Queues with dead letters").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("link").click()
    await expect(page.locator("main h1")).to_have_text("returns")
    await expect(letters(page).first).to_be_visible()


MORTAL: dict[str, object] = {"maxLength": 1, "overflow": "dead_letter_oldest"}


async def die(place: Scene, name: str, number: int) -> None:
    """Add dead letters."""
    before = await place.stats(name)
    live = 0 if before["ready"] else 1
    await place.publish(name, *(b"%d" % i for i in range(number + live)))
    await place.are_dead(name, before["dead_letters"] + number)


async def test_list_follows_new_dead_letters(place: Scene, page: Page) -> None:
    await place.declare("dying", **MORTAL)
    await show(page, place.address, "queues/dying/dead", "dying")
    await expect(page.get_by_text("No dead letters.")).to_be_visible()
    await die(place, "dying", 3)
    await expect(letters(page)).to_have_count(3)
    await expect(page.get_by_role("button", name="Redrive")).to_be_enabled()
    await letters(page).nth(1).get_by_role("checkbox").check()
    await die(place, "dying", 2)
    await expect(letters(page)).to_have_count(5)
    await expect(page.get_by_text("1 dead letter selected")).to_be_visible()
    await expect(letters(page).nth(1).get_by_role("checkbox")).to_be_checked()
    await expect(page.get_by_role("button", name="Refresh")).to_be_enabled()


async def test_list_follows_redrives_of_others_and_keeps_the_selection(place: Scene, page: Page) -> None:
    """Check that all shown pages are refreshed, and the selection keeps letters that still exist."""
    await place.declare("mended", **MORTAL)
    await die(place, "mended", 230)
    await show(page, place.address, "queues/mended/dead", "mended")
    await page.get_by_role("button", name="More dead letters").click()
    table = page.get_by_role("table", name="Dead letters")
    await expect(table).to_have_attribute("aria-rowcount", "231")
    await page.evaluate("scrollTo(0, 0)")  # only visible rows are drawn
    await expect(letters(page).first).to_have_attribute("aria-rowindex", "2")
    boxes = letters(page).get_by_role("checkbox")
    for number in (0, 1, 2):
        await boxes.nth(number).check()
    await expect(page.get_by_text("3 dead letters selected")).to_be_visible()
    names = [await boxes.nth(number).get_attribute("aria-label") or "" for number in (0, 1, 2)]
    ids = [name.removeprefix("Select ") for name in names]
    path = f"{place.address}api/v1/queues/mended/dead/redrive"
    answer = await page.request.post(path, data={"ids": ids[:2], "target": "orders/eu"})
    assert answer.status == 202
    await expect(table).to_have_attribute("aria-rowcount", "229")
    await expect(page.get_by_text("1 dead letter selected")).to_be_visible()
    await expect(page.get_by_role("checkbox", name=names[2], exact=True)).to_be_checked()
    answer = await page.request.post(path, data={"all": True, "target": "orders/eu"})
    assert answer.status == 202
    await expect(page.get_by_text("No dead letters.")).to_be_visible()
