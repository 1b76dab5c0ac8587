"""How heavy the page is, as Chromium counts what it is sent; what it takes in time is the benchmark's to say."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from benchmarks.console.findings import WEIGHT
from benchmarks.console.page import load
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_first_visit_and_the_first_plot_are_light(place: Scene, chromium: Browser) -> None:
    found = await load(chromium, place.address)
    first, whole, plotted = (
        found[each] for each in ("until the list is there", "octets", "with the first plot")
    )
    assert 0 < first <= whole < plotted
    assert WEIGHT.is_met(plotted / 1000), found
    assert found["told by the API"] > 0
    assert 40 < found["requests"] < 100  # a file each, and none again
