"""Test queues and peers with unreadable documents, and those declared by Kubernetes resources."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import Page, expect

from services.store import QueueSpec
from services.store.model.keys import RegistryKeys
from services.store.model.peer import PeerSpec
from tests.console.page.browsing import axe, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
KEY = RegistryKeys().queues
PEERS = RegistryKeys().peers


async def test_unreadable_queue_is_shown_replaced_and_deleted(place: Scene, page: Page) -> None:
    await place.store.catalogue.declare("newer", QueueSpec.model_validate({"maxLength": 7}), "test")
    kept = json.loads(place.server.call("HGET", KEY, "newer"))
    kept["spec"] = json.dumps({**json.loads(kept["spec"]), "colour": "blue"})
    place.server.call("HSET", KEY, "newer", json.dumps(kept))
    written = place.server.call("HGET", KEY, "newer")
    for tab in ("/document", ""):
        await show(page, place.address, f"queues/newer{tab}", "newer")
        await expect(page.get_by_role("alert")).to_contain_text("colour")
        shown = await page.locator("main button").all_text_contents()
        assert [each.strip() for each in shown] == ["Replace…", "Purge queue…", "Delete…"]
        await expect(page.locator("main pre")).to_have_count(0)
        tabs = await page.locator("nav.tabs a").all_text_contents()
        assert [each.split()[0] for each in tabs] == ["Status", "Messages", "Dead"]
    await expect(page.locator("dl[aria-label=Now]")).to_contain_text("Ready")
    assert await axe(page) == []
    await show(page, place.address, "queues/newer/messages", "newer")
    await expect(page.locator("main")).to_contain_text("The queue is empty.")
    await show(page, place.address, "queues/newer/dead", "newer")
    await expect(page.locator("main")).to_contain_text("No dead letters.")
    await page.get_by_role("button", name="Replace").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("New spec").fill('{"maxLength": 8}')
    await expect(dialog.get_by_role("button", name="Replace document")).to_be_disabled()
    assert await axe(page) == []
    assert place.server.call("HGET", KEY, "newer") == written
    await dialog.get_by_label("to confirm").fill("newer")
    await dialog.get_by_role("button", name="Replace document").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await expect(page.locator("main").get_by_role("alert")).to_have_count(0)
    await page.get_by_role("link", name="Document").click()
    await expect(page.get_by_label("Document as YAML")).to_have_text(re.compile("maxLength: 8\n"))
    await page.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("textbox").fill("newer")
    await dialog.get_by_role("button", name="Delete queue").click()
    await expect(page.locator("main h1")).to_have_text("Queues")


async def test_unreadable_peer_is_replaced_and_deleted(place: Scene, page: Page) -> None:
    """Check that an unreadable peer can be replaced and deleted; there is no edit button, as editing would fail."""
    written = json.dumps(
        {"owner": "test", "spec": {"protocol": "rqp-mca", "addresses": ["10.0.0.9"], "hue": 1}}
    )
    place.server.call("HSET", PEERS, "newer", written)
    await show(page, place.address, "peers/newer", "newer")
    await expect(page.locator("main").get_by_role("alert")).to_contain_text("hue")
    shown = await page.locator("main button").all_text_contents()
    assert [each.strip() for each in shown] == ["Replace…", "Delete…"]
    await expect(page.locator("main pre")).to_have_count(0)
    assert await axe(page) == []
    await page.get_by_role("button", name="Replace").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("New spec").fill('{"protocol": "rqp-mca", "addresses": ["10.0.0.10"]}')
    await expect(dialog.get_by_role("button", name="Replace document")).to_be_disabled()
    assert await axe(page) == []
    await dialog.get_by_label("to confirm").fill("newer")
    await dialog.get_by_role("button", name="Replace document").click()
    await expect(page.get_by_label("Document as YAML")).to_contain_text("10.0.0.10")
    await expect(page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("textbox").fill("newer")
    await dialog.get_by_role("button", name="Delete peer").click()
    await expect(page.locator("main h1")).to_have_text("Peers")


TILL = {"protocol": "rqp-mca", "addresses": ["10.0.0.9"]}


async def test_kubernetes_resources_show_a_warning(place: Scene, page: Page) -> None:
    spec = (await place.store.catalogue.find("invoices")).spec
    owner = "kubernetes shop/bills"
    await place.store.catalogue.declare("bills", spec, owner)
    await place.store.peers.apply("till", PeerSpec.model_validate(TILL), owner)
    try:
        for route in ("queues/bills", "queues/bills/document", "peers/till"):
            await show(page, place.address, route, route.split("/")[1])
            await expect(page.get_by_text("the operator soon reverts")).to_contain_text("shop/bills")
            assert await axe(page) == []
        await show(page, place.address, "queues/bills", "bills")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text("paused, until the operator reverts it.")).to_be_visible()
        await show(page, place.address, "queues/invoices", "invoices")
        await expect(page.get_by_role("button", name="Pause")).to_be_visible()
        await expect(page.get_by_text("the operator soon reverts")).to_have_count(0)
    finally:
        await place.store.peers.delete("till")
        await place.store.catalogue.delete(await place.store.catalogue.find("bills"))
