"""The list of dead letters follows what becomes of them, whoever does it; nobody has to look again by hand."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from services.store import QueueSpec
from services.store.model import records as record
from services.store.pipeline.async_client import Asker
from tests.console.page.looking import show
from tests.console.page.scene import Scene
from tests.live import until

pytestmark = pytest.mark.asyncio(loop_scope="module")
MORTAL = {"maxLength": 1, "overflow": "dead_letter_oldest"}


def letters(page: Page) -> Locator:
    return page.get_by_role("table", name="Dead letters").locator("tbody tr:not(.spacer)")


async def die(place: Scene, name: str, number: int) -> None:
    """So many more."""
    queue = await place.store.catalogue.find(name)
    before = await dead(place, name)
    pipe = place.store.domain(queue.domain).pipe
    await pipe.ready()
    live = 0 if (await place.store.listing.stats(queue))["ready"] else 1
    await Asker(pipe).publish(queue, [record.encode(b"%d" % i) for i in range(number + live)], "test")
    await until(lambda: is_dead(place, name, before + number))


async def dead(place: Scene, name: str) -> int:
    return int((await place.store.listing.stats(await place.store.catalogue.find(name)))["dead_letters"])


async def is_dead(place: Scene, name: str, number: int) -> bool:
    return await dead(place, name) == number


async def test_what_dies_is_listed(place: Scene, page: Page) -> None:
    await place.store.catalogue.declare("dying", QueueSpec.model_validate(MORTAL), "test")
    await show(page, place.address, "queues/dying/dead", "dying")
    await expect(page.get_by_text("Nothing died here")).to_be_visible()
    await die(place, "dying", 3)
    await expect(letters(page)).to_have_count(3)
    await expect(page.get_by_role("button", name="Redrive")).to_be_enabled()
    await letters(page).nth(1).get_by_role("checkbox").check()
    await die(place, "dying", 2)
    await expect(letters(page)).to_have_count(5)
    await expect(page.get_by_text("1 letter selected")).to_be_visible()
    await expect(letters(page).nth(1).get_by_role("checkbox")).to_be_checked()
    await expect(page.get_by_role("button", name="Look again")).to_be_enabled()


async def test_what_is_dealt_with_elsewhere_goes(place: Scene, page: Page) -> None:
    """More than one page of them, as they are shown; of those that are selected stay those that are there."""
    await place.store.catalogue.declare("mended", QueueSpec.model_validate(MORTAL), "test")
    await die(place, "mended", 230)
    await show(page, place.address, "queues/mended/dead", "mended")
    await page.get_by_role("button", name="More letters").click()
    table = page.get_by_role("table", name="Dead letters")
    await expect(table).to_have_attribute("aria-rowcount", "231")
    await page.evaluate("scrollTo(0, 0)")  # rows are drawn where one looks
    await expect(letters(page).first).to_have_attribute("aria-rowindex", "2")
    boxes = letters(page).get_by_role("checkbox")
    for number in (0, 1, 2):
        await boxes.nth(number).check()
    await expect(page.get_by_text("3 letters selected")).to_be_visible()
    names = [await boxes.nth(number).get_attribute("aria-label") or "" for number in (0, 1, 2)]
    ids = [name.removeprefix("Select ") for name in names]
    path = f"{place.address}api/v1/queues/mended/dead/redrive"
    answer = await page.request.post(path, data={"ids": ids[:2], "target": "orders/eu"})
    assert answer.status == 202
    await expect(table).to_have_attribute("aria-rowcount", "229")
    await expect(page.get_by_text("1 letter selected")).to_be_visible()
    await expect(page.get_by_role("checkbox", name=names[2], exact=True)).to_be_checked()
    answer = await page.request.post(path, data={"all": True, "target": "orders/eu"})
    assert answer.status == 202
    await expect(page.get_by_text("Nothing died here, or all of it")).to_be_visible()
