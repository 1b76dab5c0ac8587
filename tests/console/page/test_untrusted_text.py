"""Test untrusted names and bodies: invalid UTF-8, and text with misleading characters."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from services.store import QueueSpec
from tests.console.page.browsing import show
from tests.console.page.scene import Scene
from tests.tmq.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")

NO_TEXT = b"\xff\xfe/no text"
TURNED = "orders\u202eslaiceps"  # drawn as ordersspecials
EVICTS = {"overflow": "dead_letter_oldest"}
SEEN = "orders\u27e8202E\u27e9slaiceps"


async def make(place: Scene, *names: bytes) -> None:
    """Create queues by TMQ."""
    client = await Client.connect(place.edges[0].place("document"))
    for name in names:
        await client.create(name)
    client.close()


async def test_name_that_is_not_utf8(place: Scene, page: Page) -> None:
    await make(place, NO_TEXT)
    await show(page, place.address, "queues")
    await page.get_by_role("link", name="/no text").click()
    await expect(page).to_have_url(f"{place.address}#/queues/{quote(NO_TEXT, safe='')}")
    await expect(page.locator("main h1")).to_contain_text("/no text")
    await page.get_by_role("button", name="Publish").click()
    await page.get_by_role("dialog").get_by_label("Body").fill("one")
    await page.get_by_role("dialog").get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.reload()
    await page.get_by_role("link", name="Messages").click()
    await expect(page.locator(".messages li")).to_have_count(1)
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill("delete")  # the name cannot be typed
    await page.get_by_role("button", name="Delete queue").click()
    await expect(page.locator("main h1")).to_have_text("Queues")
    await expect(page.get_by_role("link", name="/no text")).to_have_count(0)


async def test_bidirectional_control_characters_in_a_name_are_escaped(place: Scene, page: Page) -> None:
    await make(place, TURNED.encode())
    await show(page, place.address, "queues")
    await page.get_by_role("link", name=SEEN).click()
    await expect(page.locator("main h1")).to_have_text(SEEN)
    assert "\u202e" not in await page.locator("body").inner_text()


async def test_bidirectional_control_characters_in_a_body_are_escaped(place: Scene, page: Page) -> None:
    await place.store.catalogue.declare(
        "turned", QueueSpec.model_validate({"maxLength": 1, **EVICTS}), "test"
    )
    client = await Client.connect(place.edges[0].place("document"))
    mqid = await client.queue(b"turned")
    await client.put(mqid, "invoice\u202efdp.exe".encode(), b"another")
    client.close()
    await show(page, place.address, "queues/turned/dead", "turned")
    await expect(page.locator("tbody td.code")).to_have_text("invoice\u27e8202E\u27e9fdp.exe")
    await page.locator("tbody a").click()
    await expect(page.get_by_label("Body as text")).to_have_text("invoice\u27e8202E\u27e9fdp.exe")


async def test_name_that_browsers_cannot_request(place: Scene, page: Page) -> None:
    await make(place, b"..")
    await show(page, place.address, "queues")
    await page.get_by_role("link", name="..", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Browsers cannot request this name")
