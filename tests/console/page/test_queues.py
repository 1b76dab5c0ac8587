"""Test the views of queues: filter, create, publish, browse, pause, edit and delete."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from services.store.model import records as record
from tests.console.page.browsing import DASH, PATIENCE_MS, axe, show
from tests.console.page.scene import SCRIPT, Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


def table(page: Page) -> Locator:
    return page.get_by_role("table", name="Queues")


async def names(page: Page) -> list[str]:
    return await table(page).locator("tbody th a").all_text_contents()


async def make(page: Page, place: Scene, name: str, spec: str = "{}") -> None:
    await show(page, place.address, "queues")
    await page.get_by_role("button", name="New queue").click()
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Document").fill(spec)
    await page.get_by_role("button", name="Create").click()


async def publish(page: Page, body: str, attributes: str = "") -> None:
    await page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Body").fill(body)
    await dialog.get_by_label("Attributes").fill(attributes)
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog).to_have_count(0)


async def test_filter_is_kept_in_the_address(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    await page.keyboard.press("/")
    await page.keyboard.type("ORDER")
    await expect(page.get_by_text("2 of")).to_be_visible()
    assert await names(page) == ["orders", "orders/eu"]
    assert page.url.endswith("#/queues?filter=ORDER")
    await page.reload()
    await expect(table(page).locator("tbody tr")).to_have_count(2)
    await page.get_by_label("Filter by name").fill("")
    await page.get_by_role("button", name="With dead letters").click()
    await expect(table(page).locator("tbody tr")).to_have_count(1)
    assert await names(page) == ["returns"]
    await page.get_by_role("button", name="Paused").click()
    await expect(table(page).get_by_role("link", name="archive")).to_be_visible()
    await page.get_by_label("Filter by name").fill("nothing has this name")
    await page.get_by_role("link", name="Show all").click()
    await expect(table(page).get_by_role("link", name="invoices")).to_be_visible()


async def test_sorting_is_kept_in_the_address(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues")
    by_name = await names(page)
    await page.get_by_role("button", name="Queue", exact=True).click()
    await expect(page.locator("th[aria-sort=descending]")).to_have_text(re.compile("Queue"))
    await expect(table(page).locator("tbody th a")).to_have_text(by_name[::-1])
    await page.get_by_role("button", name="Dead", exact=True).click()
    await expect(table(page).locator("tbody th a").first).to_have_text("returns")
    assert "sort=-dead" in page.url


async def test_create_publish_browse_and_delete(place: Scene, page: Page) -> None:
    await make(page, place, "by hand/1", '{"maxLength": 2}')
    await expect(page.locator("main h1")).to_have_text("by hand/1")
    await publish(page, '{"greeting": "hello"}', "colour: blue")
    await publish(page, SCRIPT.decode())
    await expect(page.locator("dl[aria-label=Now] dd").first).to_have_text("2")
    await page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Body").fill("one too many")
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("full")
    assert await axe(page) == []
    await dialog.get_by_role("button", name="Cancel").click()
    await look_into(page)
    await delete(page, "by hand/1")
    await expect(table(page).get_by_role("link", name="by hand/1")).to_have_count(0)


async def test_queue_purge_deletes_what_the_preview_counted(place: Scene, page: Page) -> None:
    await make(page, place, "flooded")
    await publish(page, "one")
    await publish(page, "two")
    await page.get_by_role("button", name="Purge queue…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("2 ready messages will be permanently deleted")
    assert await axe(page) == []
    button = dialog.get_by_role("button", name="Purge messages")
    await expect(button).to_be_disabled()
    await dialog.get_by_role("textbox").fill("flooded")
    queue = await place.store.catalogue.find("flooded")
    await place.store.catalogue.declare(
        "flooded", queue.spec.model_copy(update={"max_length": 9}), "test", replace=True
    )
    await button.click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await expect(dialog.get_by_role("textbox")).to_have_value("")
    assert (await place.store.listing.stats(queue))["ready"] == 2, "another queue was meant"
    await expect(dialog).to_contain_text("2 ready messages will be permanently deleted")
    asker = await place.publish("flooded", b"not counted")
    await dialog.get_by_role("textbox").fill("flooded")
    await button.click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("link", name="Progress").click()
    job = page.get_by_role("table", name="Jobs").locator("tbody tr").first
    await expect(job).to_contain_text("queue purge")
    await expect(job).to_contain_text("done")
    (left,) = await asker.take(queue, 9)
    assert [record.decode(each).body for each in left.records()] == [b"not counted"]
    await asker.settle([left])
    await job.get_by_role("link", name="flooded").click()
    await expect(page.get_by_role("link", name="Messages", exact=True)).to_have_attribute(
        "aria-current", "page"
    )
    await page.get_by_role("button", name="Purge queue…").click()
    await expect(dialog).to_contain_text("The queue has no ready messages.")
    await dialog.get_by_role("textbox").fill("flooded")
    await expect(button).to_be_disabled()


async def look_into(page: Page) -> None:
    """Browse both messages, without consuming them."""
    await page.get_by_role("link", name="Messages 2").click()
    opened = page.locator("ol.messages > li")
    await opened.nth(0).locator("summary").click()
    await expect(opened.nth(0)).to_contain_text("colour")
    await expect(opened.nth(0).locator("pre")).to_have_text('{\n  "greeting": "hello"\n}')
    await opened.nth(1).locator("summary").click()
    await expect(opened.nth(1).locator("pre")).to_have_text(SCRIPT.decode())
    assert await page.locator("main img, main script").count() == 0
    assert "owned" not in await page.title()
    assert await axe(page) == []
    await page.get_by_role("button", name="Refresh").click()
    await expect(opened).to_have_count(2)
    await expect(page.get_by_role("button", name="More messages")).to_have_count(0)


async def test_browsing_loads_further_pages(place: Scene, page: Page) -> None:
    queue = await place.declare("deep")
    await place.publish("deep", *(b"number %d" % n for n in range(120)))
    await show(page, place.address, "queues/deep/messages", "deep")
    lines = page.locator("ol.messages > li")
    await expect(lines).to_have_count(50)
    await expect(page.get_by_text("the first 50 of 120")).to_be_visible()
    for shown in (100, 120):
        await page.get_by_role("button", name="More messages").click()
        await expect(lines).to_have_count(shown)
    await expect(page.get_by_role("button", name="More messages")).to_have_count(0)
    await expect(lines.last).to_contain_text("number 119")
    await place.store.catalogue.delete(queue)


async def delete(page: Page, name: str) -> None:
    """Delete the queue, after typing its name."""
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("2 messages")
    button = dialog.get_by_role("button", name="Delete queue")
    await expect(button).to_be_disabled()
    await dialog.get_by_role("textbox").fill("something else")
    await expect(button).to_be_disabled()
    await dialog.get_by_role("textbox").fill(name)
    await button.click()
    await expect(page.locator("main h1")).to_have_text("Queues")


async def test_pause_and_resume(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/invoices", "invoices")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator(".badge", has_text="Paused")).to_be_visible()
    assert (await place.store.catalogue.find("invoices")).spec.paused
    await page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Body").fill("not now")
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("paused")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator(".badge", has_text="Paused")).to_have_count(0)
    assert not (await place.store.catalogue.find("invoices")).spec.paused


async def test_editing_a_document_reports_errors(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/invoices/document", "invoices")
    await page.get_by_role("button", name="Edit").click()
    field = page.get_by_label("The document's spec")
    await field.fill('{"maxLength": }')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("Invalid JSON")
    await field.fill('{"maxLengths": 7}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("maxLengths")
    await field.fill('{"maxLength": 7}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Document as YAML")).to_contain_text("maxLength: 7")
    assert (await place.store.catalogue.find("invoices")).spec.max_length == 7


async def test_browsing_shows_how_many_messages_are_left_out(place: Scene, page: Page) -> None:
    queue = await place.declare("full")
    await place.publish("full", *(b"%d " % number + b"x" * 20_000 for number in range(376)))
    await show(page, place.address, "queues/full/messages", "full")
    shown = page.locator("ol.messages > li")
    await expect(page.get_by_text("The first 50 of 376 messages")).to_be_visible()
    await expect(shown).to_have_count(50)
    await page.get_by_role("button", name="200").click()
    await expect(page.get_by_text("The first 200 of 376 messages")).to_be_visible()
    await page.get_by_role("button", name="1,000").click()
    many = page.get_by_text(re.compile(r"The first 2\d\d of 376"))  # 4 MiB are searched
    await expect(many).to_be_visible()
    assert "first=1000" in page.url
    await shown.last.locator("summary").click()
    await expect(shown.last.locator("pre")).to_contain_text("xxx")
    await expect(shown.last).to_contain_text("Showing the first 4.1 KiB.")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await place.store.catalogue.delete(queue)


async def test_copying_without_a_clipboard_shows_a_notice(place: Scene, page: Page) -> None:
    """Check the notice without a clipboard, which is undefined over plain HTTP, except at localhost."""
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    await show(page, place.address, "queues/orders/document")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_text("The browser does not allow copying here")).to_be_visible()


async def test_queue_shows_its_history(place: Scene, page: Page) -> None:
    await show(page, place.address, "queues/orders")
    await expect(page.locator("figure.plot")).to_have_count(4)
    flow = page.get_by_role("figure", name="Messages per second")
    # a step is reported when it is complete and all processes have reported it; the page polls every 10 s
    put = flow.locator(".key", has_text="in").first
    await expect(put).not_to_have_text(re.compile(DASH), timeout=2 * PATIENCE_MS)
    await page.get_by_role("button", name="15 min").click()
    assert page.url.endswith("?minutes=15")
    await expect(page.locator("dl.facts", has_text="TMQ")).to_contain_text("orders")
