"""Test the page's size as transferred to Chromium. Load times are measured by the benchmark."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from benchmarks.console.findings import WEIGHT
from benchmarks.console.page import load
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_first_visit_and_first_plot_stay_within_the_size_limit(place: Scene, chromium: Browser) -> None:
    found = await load(chromium, place.address)
    first, whole, plotted = (
        found[each] for each in ("until the list is there", "octets", "with the first plot")
    )
    assert 0 < first <= whole < plotted
    assert WEIGHT.is_met(plotted / 1000), found
    assert found["API responses"] > 0
    assert 40 < found["requests"] < 100  # one for each file, without repetition
