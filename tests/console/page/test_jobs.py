"""Jobs: those under way are seen and can be ended however many came after them, and the older ones are reached."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from playwright.async_api import Page, expect

from services.console.core.console import SHOWN_JOBS
from tests.console.local import HEADERS
from tests.console.page.looking import axe, show
from tests.console.page.scene import Scene
from tests.live import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


def ask(place: Scene, method: str, path: str, body: Any = None) -> Any:
    """Of the console's API."""
    asked = urllib.request.Request(
        f"{place.address}api/v1/{path}",
        json.dumps(body).encode() if body else None,
        {"Content-Type": "application/json", **HEADERS},
        method=method,
    )
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


async def ended(place: Scene, job: str) -> None:
    await until(lambda: ask(place, "GET", f"jobs/{job}")["state"] == "done")


async def test_a_job_under_way_stands_before_all_that_came_after_it(place: Scene, page: Page) -> None:
    redrive = "queues/returns/dead/redrive"
    slow = {"all": True, "rate": 1, "target": "orders/eu"}
    ask(place, "POST", redrive, slow)
    for _ in range(SHOWN_JOBS + 5):
        job = ask(place, "POST", redrive, {"ids": ["1-1"], "target": "invoices"})["id"]
        await ended(place, job)
    await show(page, place.address, "jobs")
    table = page.get_by_role("table", name="Jobs")
    first = table.locator("tbody tr[data-index='0']")
    await expect(first).to_contain_text("orders/eu")
    await expect(first).to_contain_text("running")
    ways = page.get_by_role("navigation", name="Views")
    await expect(ways.get_by_role("link", name="Jobs").locator(".figure")).to_have_text("1")
    await page.get_by_role("button", name="More jobs").click()
    await expect(table).to_have_attribute("aria-rowcount", str(1 + SHOWN_JOBS + 6))
    await expect(page.get_by_role("button", name="More jobs")).to_have_count(0)
    assert await axe(page) == []
    await first.get_by_role("button", name="Cancel").click()
    row = table.locator("tbody tr").filter(has_text="orders/eu")
    await expect(row).to_contain_text("cancelled")
    await expect(row).to_have_attribute("data-index", str(SHOWN_JOBS + 5))  # at its place, as the oldest
