"""Queues and peers that a resource of Kubernetes declares: what is changed of them by hand does not last."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from services.store.model.peer import PeerSpec
from tests.console.page.looking import axe, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
TILL = {"protocol": "rqp-mca", "addresses": ["10.0.0.9"]}


async def test_what_kubernetes_declares_is_said_before_it_is_changed(place: Scene, page: Page) -> None:
    spec = (await place.store.catalogue.find("invoices")).spec
    owner = "kubernetes shop/bills"
    await place.store.catalogue.declare("bills", spec, owner)
    await place.store.peers.apply("till", PeerSpec.model_validate(TILL), owner)
    try:
        for route in ("queues/bills", "queues/bills/document", "peers/till"):
            await show(page, place.address, route, route.split("/")[1])
            await expect(page.get_by_text("the operator soon changes back")).to_contain_text("shop/bills")
            assert await axe(page) == []
        await show(page, place.address, "queues/bills", "bills")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text("is paused, until the operator changes it back.")).to_be_visible()
        await show(page, place.address, "queues/invoices", "invoices")
        await expect(page.get_by_role("button", name="Pause")).to_be_visible()
        await expect(page.get_by_text("the operator soon changes back")).to_have_count(0)
    finally:
        await place.store.peers.delete("till")
        await place.store.catalogue.delete(await place.store.catalogue.find("bills"))
