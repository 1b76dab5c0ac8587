"""Test changes by other users while a user edits or deletes."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Locator, Page, Response, expect

from services.store.model.peer import PeerSpec
from tests.console.page.browsing import axe, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
MORTAL: dict[str, object] = {"maxLength": 1, "overflow": "dead_letter_oldest"}
NOW = "Current document"


async def replace(place: Scene, name: str, **spec: object) -> None:
    """Delete the queue and create another one of the same name."""
    await place.store.catalogue.delete(await place.store.catalogue.find(name))
    await place.declare(name, **spec)


class Seen:
    """A wait until the page has fetched a document with another ETag."""

    def __init__(self, page: Page, path: str) -> None:
        self._path, self._tags = path, set[str]()
        self._is_other = asyncio.Event()
        page.on("response", self._on_response)

    def _on_response(self, response: Response) -> None:
        if response.request.method == "GET" and response.url.endswith(self._path) and response.ok:
            self._tags.add(response.headers["etag"])
            if len(self._tags) > 1:
                self._is_other.set()

    async def other(self, page: Page) -> None:
        async with asyncio.timeout(30):
            await self._is_other.wait()
        # it is drawn
        await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


async def test_edit_of_an_outdated_document_is_not_saved(place: Scene, page: Page) -> None:
    await place.declare("both")
    seen = Seen(page, "/queues/both")
    await show(page, place.address, "queues/both/document", "both")
    await page.get_by_role("button", name="Edit").click()
    field = page.get_by_label("The document's spec")
    await field.fill('{"maxLength": 1}')
    await place.declare("both", maxLength=99, paused=True)
    await seen.other(page)
    for _ in range(2):
        async with page.expect_response(lambda response: response.request.method == "PUT") as saved:
            await page.get_by_role("button", name="Save").click()
        assert (await saved.value).status == 412
        await expect(
            page.get_by_text("Another user changed the document while you were editing")
        ).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)  # a single message covers both
    assert (await place.store.catalogue.find("both")).spec.max_length == 99
    await expect(page.get_by_label(NOW)).to_contain_text("maxLength: 99")
    await expect(field).to_have_value('{"maxLength": 1}')
    assert await axe(page) == []
    await page.get_by_role("button", name="Start over from this document").click()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await field.fill('{"maxLength": 98, "paused": true}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Document as YAML")).to_contain_text("maxLength: 98")


async def test_replaced_queue_is_not_deleted(place: Scene, page: Page) -> None:
    await place.declare("fleeting")
    seen = Seen(page, "/queues/fleeting")
    await show(page, place.address, "queues/fleeting", "fleeting")
    dialog = await deleting(page)
    await replace(place, "fleeting", maxLength=5)
    await seen.other(page)
    await refused(dialog, "fleeting")
    assert (await place.store.catalogue.find("fleeting")).spec.max_length == 5
    await once_more(page, dialog, "fleeting", "Queues")


async def test_buttons_of_a_deleted_queue_disappear(place: Scene, page: Page) -> None:
    await place.declare("gone")
    await show(page, place.address, "queues/gone", "gone")
    await expect(page.get_by_role("button", name="Publish")).to_be_visible()
    await place.store.catalogue.delete(await place.store.catalogue.find("gone"))
    await expect(page.get_by_role("alert")).to_contain_text("It may have been deleted")
    await expect(page.locator("main .actions button")).to_have_count(0)
    await expect(page.locator("main .tabs")).to_have_count(0)


async def test_changed_peer_is_not_deleted(place: Scene, page: Page) -> None:
    spec = {"protocol": "rqp-mca", "addresses": ["10.0.0.8"]}
    await place.store.peers.apply("mill", PeerSpec.model_validate(spec), "test")
    await show(page, place.address, "peers/mill", "mill")
    dialog = await deleting(page)
    await place.store.peers.apply(
        "mill", PeerSpec.model_validate({**spec, "addresses": ["10.0.0.9"]}), "test"
    )
    await refused(dialog, "mill")
    await once_more(page, dialog, "mill", "Peers")


async def deleting(page: Page) -> Locator:
    await page.get_by_role("button", name="Delete").click()
    return page.get_by_role("dialog")


async def refused(dialog: Locator, name: str) -> None:
    """Check that the deletion fails, and that the name has to be typed again."""
    await dialog.get_by_role("textbox").fill(name)
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Another user changed it")
    await expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    await expect(dialog.get_by_role("textbox")).to_have_value("")


async def once_more(page: Page, dialog: Locator, name: str, heading: str) -> None:
    await dialog.get_by_role("textbox").fill(name)
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.locator("main h1")).to_have_text(heading)


async def asked_about(place: Scene, page: Page, name: str) -> Locator:
    """Open the purge dialog for three dead letters of a new queue."""
    await place.declare(name, **MORTAL)
    await die(place, name, 3)
    await show(page, place.address, f"queues/{name}/dead", name)
    await page.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("3 dead letters will be permanently deleted")
    return dialog


async def test_purge_of_a_replaced_queue_is_counted_again(place: Scene, page: Page) -> None:
    """Check that only the queue that was counted is purged (docs/console.md, Dead letters)."""
    dialog = await asked_about(place, page, "mortal")
    await replace(place, "mortal", **MORTAL)
    await die(place, "mortal", 7)
    await dialog.get_by_role("textbox").fill("mortal")
    button = dialog.get_by_role("button", name="Purge dead letters")
    await button.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Another user changed it")
    await expect(dialog).to_contain_text("7 dead letters will be permanently deleted")
    await expect(button).to_be_disabled()
    assert (await place.stats("mortal"))["dead_letters"] == 7
    await dialog.get_by_role("textbox").fill("mortal")
    await button.click()
    await expect(dialog).to_have_count(0)
    await place.are_dead("mortal", 0)


async def test_dead_letters_after_the_count_are_not_affected(place: Scene, page: Page) -> None:
    dialog = await asked_about(place, page, "doomed")
    await more_die(place, "doomed", 8)
    await dialog.get_by_role("textbox").fill("doomed")
    await dialog.get_by_role("button", name="Purge dead letters").click()
    await expect(dialog).to_have_count(0)
    await place.are_dead("doomed", 5)
    await place.declare("haven")
    await page.get_by_role("button", name="Redrive…").click()
    await dialog.get_by_label("Target queue").fill("haven")
    await expect(dialog).to_contain_text("5 dead letters will be moved to the end of haven")
    await more_die(place, "doomed", 8)
    await dialog.get_by_role("button", name="Redrive 5").click()
    await expect(dialog).to_have_count(0)
    await place.are_dead("doomed", 3)


async def more_die(place: Scene, name: str, number: int) -> None:
    """Publish until there are this many dead letters: each message replaces the one before it."""
    dead = (await place.stats(name))["dead_letters"]
    await place.publish(name, *[b"more"] * (number - dead))
    await place.are_dead(name, number)


async def die(place: Scene, name: str, number: int) -> None:
    await place.publish(name, *(b"%d" % i for i in range(number + 1)))
    await place.are_dead(name, number)
