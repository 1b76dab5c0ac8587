"""What the overview plots: the history of before, behind it what the page has seen (flows.js)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page

from tests.console.page.looking import call

pytestmark = pytest.mark.asyncio(loop_scope="module")
START = 1_800_000_000  # s
STEP_S, REFRESH_MS = 10, 2000


def history(steps: int) -> dict[str, Any]:
    series = {name: [float(step) for step in range(steps)] for name in ("in", "out", "acked")}
    begun = datetime.fromtimestamp(START, UTC).isoformat().replace("+00:00", "Z")
    return {"from": begun, "stepMs": STEP_S * 1000, "series": series}


def seen(*at: float) -> dict[str, Any]:
    values = [100.0 + number for number in range(len(at))]
    return {"at": list(at), "in": values, "out": values, "acked": values}


async def plotted(page: Page, told: Any, known: Any) -> list[tuple[float, float | None]]:
    """[(s since START, value)], the same for all three."""
    found = await call(page, "flows.js", "m.behind(...given)", [told, known, REFRESH_MS])
    assert found["in"] == found["out"] == found["acked"]
    return [(at - START, value) for at, value in zip(found["at"], found["in"], strict=True)]


async def test_history_and_what_was_seen_are_joined(ready: Page) -> None:
    """12 s of samples are not told yet when the page begins: no gap, and nothing twice."""
    now = [START + 43.0, START + 45.0]
    assert await plotted(ready, history(4), seen(*now)) == [
        (5, 0), (15, 1), (25, 2), (35, 3), (43, 100), (45, 101),
    ]  # fmt: skip
    assert await plotted(ready, history(6), seen(*now)) == [
        (5, 0), (15, 1), (25, 2), (35, 3), (43, 100), (45, 101),
    ]  # fmt: skip
    assert await plotted(ready, None, seen(*now)) == [(43, 100), (45, 101)]
    assert await plotted(ready, history(2), seen()) == [(5, 0), (15, 1)]


async def test_history_of_long_ago_is_left_out(ready: Page) -> None:
    """The page has been open for long: 15 min are plotted, and nothing of before."""
    now = START + 15 * 60 + 20.0
    assert await plotted(ready, history(4), seen(now - 2, now)) == [
        (25, 2), (35, 3), ((35 + 918) / 2, None), (918, 100), (920, 101),
    ]  # fmt: skip
    assert await plotted(ready, history(4), seen(now + 898, now + 900)) == [(1818, 100), (1820, 101)]


async def test_what_nobody_saw_is_a_gap(ready: Page) -> None:
    """A connection that was lost, a computer that slept."""
    assert await plotted(ready, None, seen(*(START + at for at in (0, 2, 8, 14.5, 16)))) == [
        (0, 100), (2, 101), (8, 102), (11.25, None), (14.5, 103), (16, 104),
    ]  # fmt: skip


async def test_fifteen_minutes_of_what_is_seen_are_kept(ready: Page) -> None:
    follow = (
        "given.reduce((seen, s) => m.followed(seen, {at: new Date(s * 1000).toISOString(), rates: "
        "{in: s, out: s, acked: s}}), {at: [], in: [], out: [], acked: []})"
    )
    times = list(range(START, START + 3 * 3600, 2))
    found = await call(ready, "flows.js", follow, [*times, times[-1]])
    assert found["at"] == found["acked"] == [each for each in times if each > times[-1] - 900]
