"""Test responses that take longer than the page's polling interval."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest
from playwright.async_api import Error, Page, Route, expect

from services.store import QueueSpec
from tests.console.page.scene import GROUP, Scene
from tests.live import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Slow:
    """A route that delays responses, and counts them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.under_way: Counter[str] = Counter()
        self.most = 0  # for one address at a time
        self.asked = 0

    async def __call__(self, route: Route) -> None:
        url = route.request.url
        self.asked += 1
        self.under_way[url] += 1
        self.most = max(self.most, self.under_way[url])
        await asyncio.sleep(self._seconds)
        self.under_way[url] -= 1
        with contextlib.suppress(Error):  # the page has aborted the request
            await route.continue_()


async def test_loading_text_is_drawn_first(place: Scene, page: Page) -> None:
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route(
        lambda url: url.endswith((".css", ".woff2")) or ("js" in url and "early" not in url), hold
    )
    await page.goto(place.address, wait_until="commit")
    await expect(page.get_by_role("status")).to_have_text("Penstock is loading\u2026")
    await until(lambda: page.evaluate("performance.getEntriesByName('first-contentful-paint').length"))
    held.set()
    await expect(page.locator("main h1")).to_have_text("Overview")


async def test_responses_slower_than_the_poll_interval_are_shown(place: Scene, page: Page) -> None:
    slow = Slow(2.6)  # the view of the ring polls every 2 s
    await page.route("**/api/v1/ring", slow)
    await page.goto(f"{place.address}#/ring")
    await expect(page.get_by_text(f"Group {GROUP}").first).to_be_visible()
    await until(lambda: slow.asked > 1)  # it polls again
    assert slow.most == 1
    await page.unroute_all(behavior="wait")


async def test_queues_of_a_peer_are_fetched_once_at_a_time(place: Scene, page: Page) -> None:
    spec = {"remote": {"protocol": "rqp-mca", "peers": ["warehouse"], "queueId": 7}}
    queue, _ = await place.store.catalogue.declare("to the warehouse", QueueSpec.model_validate(spec), "test")
    slow = Slow(6.5)
    await page.route("**/api/v1/queues/to*", slow)
    await page.goto(f"{place.address}#/peers/warehouse")
    await expect(page.get_by_role("link", name="to the warehouse")).to_be_visible()
    await until(lambda: slow.asked > 1)
    assert slow.most == 1
    await page.unroute_all(behavior="wait")
    await place.store.catalogue.delete(queue)
