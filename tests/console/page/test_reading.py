"""The console is still reading samples: the page asks again, and shows what is known by then."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route

from tests.console.page.looking import show
from tests.console.page.scene import Scene
from tests.live import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_plots_that_are_not_complete_are_asked_again_soon(place: Scene, page: Page) -> None:
    """The overview asks for them once."""
    told: list[bool] = []

    async def half_read(route: Route) -> None:
        reply = await route.fetch()
        document = await reply.json()
        document["complete"] = len(told) >= 2
        told.append(document["complete"])
        await route.fulfill(response=reply, json=document)

    await page.route("**/api/v1/history?*", half_read)
    await show(page, place.address, "overview")
    await until(lambda: told == [False, False, True])
