"""Test plots: the history, followed by live data (flows.js)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from services.store import QueueSpec
from tests.console.page.browsing import call, show
from tests.console.page.scene import Scene
from tests.live import until
from tests.tmq.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")
START = 1_800_000_000  # s
STEP_S, REFRESH_MS = 10, 2000
SAMPLED_MS = 90_000  # upkeep samples queues every 10 s, and a step is reported 12 s after its end


def history(steps: int) -> dict[str, Any]:
    series = {name: [float(step) for step in range(steps)] for name in ("in", "out", "acked")}
    begun = datetime.fromtimestamp(START, UTC).isoformat().replace("+00:00", "Z")
    return {"from": begun, "stepMs": STEP_S * 1000, "series": series}


def seen(*at: float) -> dict[str, Any]:
    values = [100.0 + number for number in range(len(at))]
    return {"at": list(at), "in": values, "out": values, "acked": values}


async def plotted(page: Page, reported: Any, known: Any) -> list[tuple[float, float | None]]:
    """Return [(s since START, value)], the same for all three series."""
    found = await call(page, "flows.js", "m.withHistory(...given)", [reported, known, REFRESH_MS])
    assert found["in"] == found["out"] == found["acked"]
    return [(at - START, value) for at, value in zip(found["at"], found["in"], strict=True)]


async def test_history_is_joined_with_live_data(ready: Page) -> None:
    """Check that live data continue a history that lacks the last 12 s, without a gap or duplicates."""
    now = [START + 43.0, START + 45.0]
    assert await plotted(ready, history(4), seen(*now)) == [
        (5, 0), (15, 1), (25, 2), (35, 3), (43, 100), (45, 101),
    ]  # fmt: skip
    assert await plotted(ready, history(6), seen(*now)) == [
        (5, 0), (15, 1), (25, 2), (35, 3), (43, 100), (45, 101),
    ]  # fmt: skip
    assert await plotted(ready, None, seen(*now)) == [(43, 100), (45, 101)]
    assert await plotted(ready, history(2), seen()) == [(5, 0), (15, 1)]


async def test_old_history_is_left_out(ready: Page) -> None:
    """Check that only 15 minutes are plotted after a long time."""
    now = START + 15 * 60 + 20.0
    assert await plotted(ready, history(4), seen(now - 2, now)) == [
        (25, 2), (35, 3), ((35 + 918) / 2, None), (918, 100), (920, 101),
    ]  # fmt: skip
    assert await plotted(ready, history(4), seen(now + 898, now + 900)) == [(1818, 100), (1820, 101)]


async def test_missing_data_is_a_gap(ready: Page) -> None:
    """Check that missing data are a gap, for example after a lost connection or sleep."""
    assert await plotted(ready, None, seen(*(START + at for at in (0, 2, 8, 14.5, 16)))) == [
        (0, 100), (2, 101), (8, 102), (11.25, None), (14.5, 103), (16, 104),
    ]  # fmt: skip


async def test_sizes_are_at_the_end_of_a_step_and_rates_in_its_middle(ready: Page) -> None:
    for part, first in ((0.5, 5), (1, 10)):
        found = await call(ready, "flows.js", "m.stepTimes(...given)", [history(3), part])
        assert [at - START for at in found] == [first, first + 10, first + 20]


async def test_ready_in_the_plot_excludes_messages_in_flight(place: Scene, page: Page) -> None:
    """Check that the plot of ready messages excludes messages in flight."""
    await place.store.catalogue.declare("lent", QueueSpec(), "test")
    client = await Client.connect(place.edges[0].place("document"))
    try:
        queue = await client.queue(b"lent")
        await client.put(queue, *(b"%d" % number for number in range(7)))
        assert await client.ts()
        for _ in range(3):
            assert await client.dnq(queue) is not None
        await show(page, place.address, "queues/lent", "lent")
        strip = page.locator("dl.strip")
        for name, value in (("ready", "4"), ("in flight", "3")):
            await expect(strip.locator("div", has_text=name).locator("dd")).to_have_text(value)
        depth = page.get_by_role("figure", name="Depth")
        for name, value in (("in flight", "3"), ("ready", "4")):
            await expect(depth.locator(".key", has_text=name).locator("b")).to_have_text(
                value, timeout=SAMPLED_MS
            )
    finally:
        client.close()


async def test_fifteen_minutes_of_live_data_are_kept(ready: Page) -> None:
    follow = (
        "given.reduce((seen, s) => m.withSample(seen, {at: new Date(s * 1000).toISOString(), rates: "
        "{in: s, out: s, acked: s}}), {at: [], in: [], out: [], acked: []})"
    )
    times = list(range(START, START + 3 * 3600, 2))
    found = await call(ready, "flows.js", follow, [*times, times[-1]])
    assert found["at"] == found["acked"] == [each for each in times if each > times[-1] - 900]


async def test_incomplete_history_is_fetched_again(place: Scene, page: Page) -> None:
    """Check that the overview fetches the history again until it is complete."""
    results: list[bool] = []

    async def half_read(route: Route) -> None:
        reply = await route.fetch()
        document = await reply.json()
        document["complete"] = len(results) >= 2
        results.append(document["complete"])
        await route.fulfill(response=reply, json=document)

    await page.route("**/api/v1/history?*", half_read)
    await show(page, place.address, "overview")
    await until(lambda: results == [False, False, True])
