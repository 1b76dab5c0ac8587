"""A computer whose clock goes wrong: ages are by the store's."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.console.page.looking import show
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
WRONG = """
    const Right = Date;
    globalThis.Date = class extends Right {
        constructor(...given) { given.length ? super(...given) : super(Date.now()); }
        static now() { return Right.now() + (%d); }
    };
"""
HOUR_MS = 3_600_000
AGE = re.compile(r"^\d+(\.\d)? s|^\d min")  # what is here is a few minutes old at most


@pytest.mark.parametrize("wrong_ms", [-HOUR_MS, HOUR_MS, 0])
async def test_ages_are_right_where_the_clock_is_wrong(place: Scene, page: Page, wrong_ms: int) -> None:
    await page.add_init_script(WRONG % wrong_ms)
    await show(page, place.address, "queues/returns/dead")
    ages = page.get_by_role("table", name="Dead letters").locator("time")
    await expect(ages.first).to_have_text(re.compile(AGE.pattern + ".* ago"))
    await expect(ages.first).not_to_have_text("0 s ago")  # what lies ahead would be
    await show(page, place.address, "connections")
    opened = page.get_by_role("table", name="Connections").locator("tbody tr td:nth-of-type(4)")
    await expect(opened.first).to_have_text(AGE)
    await show(page, place.address, "overview")
    await expect(page.locator("ul.processes li").first).to_contain_text(
        re.compile(r"up [1-9]\d*(\.\d)? (s|min)")
    )
