"""Test ages and times if the computer's clock is wrong."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.local import HEADERS
from tests.console.page.browsing import call, show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")
WRONG = """
    const Right = Date;
    globalThis.Date = class extends Right {
        constructor(...given) { given.length ? super(...given) : super(Date.now()); }
        static now() { return Right.now() + (%d); }
    };
"""
HOUR_MS = 3_600_000
AGE = re.compile(r"^\d+(\.\d)? s|^\d min")  # everything here is a few minutes old at most


@pytest.mark.parametrize("wrong_ms", [-HOUR_MS, HOUR_MS])
async def test_ages_are_right_if_the_computers_clock_is_wrong(
    place: Scene, page: Page, wrong_ms: int
) -> None:
    await page.add_init_script(WRONG % wrong_ms)
    await show(page, place.address, "queues/returns/dead")
    ages = page.get_by_role("table", name="Dead letters").locator("time")
    await expect(ages.first).to_have_text(re.compile(AGE.pattern + ".* ago"))
    await expect(ages.first).not_to_have_text("0 s ago")  # times in the future would be
    await show(page, place.address, "connections")
    opened = page.get_by_role("table", name="Connections").locator("tbody tr td:nth-of-type(4)")
    await expect(opened.first).to_have_text(AGE)
    await show(page, place.address, "overview")
    await expect(page.locator("ul.processes li").first).to_contain_text(
        re.compile(r"up [1-9]\d*(\.\d)? (s|min)")
    )


TOLD_AGAIN = """(() => {
    const right = Date.now;
    const at = new Date(right()).toISOString();
    m.syncClock(at);
    Date.now = () => right() + 15_000;
    m.syncClock(at);
    const found = m.now() - Date.now();
    Date.now = right;
    return found;
})()"""


async def test_repeated_overview_does_not_set_the_clock(place: Scene, page: Page) -> None:
    """Check that a repeated overview, as between two polls of the console, does not set the clock."""
    await show(page, place.address, "config")
    assert abs(await call(page, "formats.js", TOLD_AGAIN)) < 5000


async def test_time_fields_are_local(place: Scene, chromium: Browser) -> None:
    """Check that time fields are local, also before 1883, when New York was 4:56:02 behind UTC."""
    page = await chromium.new_page(timezone_id="America/New_York", extra_http_headers=HEADERS)
    try:
        for text, here in (
            ("1880-01-01T00:00:00.000Z", "1879-12-31T19:03"),
            ("2026-07-01T00:30:00.000Z", "2026-06-30T20:30"),
            ("0999-06-01T12:00:00.000Z", "0999-06-01T07:03"),
            ("%2B012026-07-01T00:30:00.000Z", "12026-06-30T20:30"),
        ):
            await show(page, place.address, f"audit?from={text}", "Audit log")
            await expect(page.get_by_label("From")).to_have_value(here)
    finally:
        await page.close()
