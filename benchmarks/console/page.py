"""python -m benchmarks.console.page: how heavy the page is, how soon it is there, and what a thousand queues cost it.

A real console on a real store with edges and traffic, Debian's Chromium, nothing kept from one load to the next.
Times are ms from the request to what a person sees: first paint, the list of queues with its figures, and after a
press of a key the filtered list. `busy` is the share of a second in which the page's thread works while a thousand
queues are told anew every two seconds. `--json FILE` keeps it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Page, async_playwright

from tests.console.page.scene import Scene, scene

LOADS = 9
WATCHED_S = 10.0
QUEUES = 1000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
NOW = "performance.now()"
FILES = "performance.getEntriesByType('resource').length"
QUIET_S = 2.0  # without another file
# from a key in the filter until the list has what it asks for
FILTERED = """async () => {
  const field = document.querySelector("[data-filter]");
  const rows = () => document.querySelectorAll("table[aria-label=Queues] tbody tr").length;
  const begun = performance.now();
  field.value = "z012";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  while (rows() !== 10) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""


async def measure() -> dict[str, Any]:
    """Raises OSError where there is no Chromium."""
    program = shutil.which("chromium")
    if program is None:
        raise OSError("chromium is not installed (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder:
        async with scene(Path(folder)) as place, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            await fill(place)
            found = {**await loads(browser, place.address), **await watched(browser, place.address)}
            await browser.close()
    return found


async def fill(place: Scene) -> None:
    spec = (await place.store.find("orders")).spec
    for first in range(0, QUEUES, 50):
        await asyncio.gather(
            *(place.store.declare(f"z{number:04}", spec, "test") for number in range(first, first + 50))
        )


async def loads(browser: Browser, address: str) -> dict[str, Any]:
    """Medians of loads that find nothing kept."""
    rounds = [await load(browser, address) for _ in range(LOADS)]
    return {name: round(statistics.median(each[name] for each in rounds)) for name in rounds[0]}


async def load(browser: Browser, address: str) -> dict[str, float]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    wire = await counted(page)
    await page.goto(f"{address}#/queues")
    await page.wait_for_selector("table[aria-label=Queues] tbody tr")
    listed = await page.evaluate(NOW)
    paint = await page.evaluate(PAINT)
    await until_all_is_there(page)
    octets, requests = sum(wire), len(wire)
    await context.close()
    return {"octets": octets, "requests": requests, "first paint": paint, "list there": listed}


async def until_all_is_there(page: Page) -> None:
    """What comes in the pause after the first view counts, too."""
    seen, now = -1, 0
    while seen != now:
        await asyncio.sleep(QUIET_S)
        seen, now = now, await page.evaluate(FILES)


async def counted(page: Page) -> list[int]:
    """Octets over the wire of each file, with its head; not of what the API tells."""
    wire: list[int] = []
    files: set[str] = set()
    session: CDPSession = await page.context.new_cdp_session(page)
    await session.send("Network.enable")

    def began(told: dict[str, Any]) -> None:
        if "/api/" not in told["response"]["url"]:
            files.add(told["requestId"])

    def ended(told: dict[str, Any]) -> None:
        if told["requestId"] in files:
            wire.append(int(told["encodedDataLength"]))

    session.on("Network.responseReceived", began)
    session.on("Network.loadingFinished", ended)
    return wire


async def watched(browser: Browser, address: str) -> dict[str, Any]:
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    await page.goto(f"{address}#/queues")
    await page.wait_for_selector("table[aria-label=Queues] tbody tr")
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    before = await task_s(session)
    await asyncio.sleep(WATCHED_S)
    busy = (await task_s(session) - before) / WATCHED_S
    rows = await page.locator("tbody tr").count()
    filtered = await page.evaluate(FILTERED)
    await page.close()
    return {"busy %": round(100 * busy, 1), "rows in the page": rows, "filtered": round(filtered)}


async def task_s(session: CDPSession) -> float:
    told = await session.send("Performance.getMetrics")
    return next(float(each["value"]) for each in told["metrics"] if each["name"] == "TaskDuration")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    told = asyncio.run(measure())
    for name, value in told.items():
        print(f"{name:18} {value:>10,}")
    if wanted.json:
        wanted.json.write_text(json.dumps(told, indent=2) + "\n")
