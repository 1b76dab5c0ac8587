"""Test the view of jobs with many jobs."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from services.console.core.console import SHOWN_JOBS
from services.store.catalogue.job_board import JobBoard
from tests.console.page.browsing import axe, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_running_jobs_are_listed_before_newer_ended_ones(place: Scene, page: Page) -> None:
    api = f"{place.address}api/v1"
    before = len((await (await page.request.get(f"{api}/jobs?limit=1000")).json())["items"])
    slow = {"all": True, "rate": 1, "target": "orders/eu"}
    answer = await page.request.post(f"{api}/queues/returns/dead/redrive", data=slow)
    job = await answer.json()
    board = JobBoard(place.store.registry)
    # of another console; of jobs that start together, the greater id is later
    for number in range(SHOWN_JOBS + 5):
        name = f"ffffffffffff{number:04x}"
        ended = {"id": name, "state": "done", "target": "invoices", "endedAt": job["startedAt"]}
        await board.put(name, {**job, **ended})
    await show(page, place.address, "jobs")
    table = page.get_by_role("table", name="Jobs")
    first = table.locator("tbody tr[data-index='0']")
    await expect(first).to_contain_text("orders/eu")
    await expect(first).to_contain_text("running")
    ways = page.get_by_role("navigation", name="Views")
    await expect(ways.get_by_role("link", name="Jobs").locator(".figure")).to_have_text("1")
    await page.get_by_role("button", name="More jobs").click()
    await expect(table).to_have_attribute("aria-rowcount", str(1 + before + SHOWN_JOBS + 6))
    await expect(page.get_by_role("button", name="More jobs")).to_have_count(0)
    assert await axe(page) == []
    await page.evaluate("scrollTo(0, 0)")  # only visible rows are drawn
    await first.get_by_role("button", name="Cancel").click()
    await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    row = table.locator(f"tbody tr[data-index='{SHOWN_JOBS + 5}']")  # in its place, after those
    await expect(row).to_contain_text("orders/eu")
    await expect(row).to_contain_text("cancelled")
