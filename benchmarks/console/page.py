"""python -m benchmarks.console.page: the page's weight, its load times, and its cost with a thousand queues.

Uses a real console on a real store with edges and traffic, and Debian's Chromium with an empty cache for each load.
Octets are those that Chromium reports as received, with response headers: of all files of a first visit, of those
loaded before the list is shown, and with the first plot; and separately those of the API. Times are ms from the request
to the visible result: first paint, the list of queues with its figures, and after a key press the filtered list. `busy`
is the share of a second in which the page's thread works while a thousand queues are updated every two seconds.
`--json FILE` saves the results.
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

from tests.console.local import HEADERS
from tests.console.page.scene import Scene, scene

LOADS = 9
WATCHED_S = 10.0
QUEUES = 1000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
NOW = "performance.now()"
FILES = "performance.getEntriesByType('resource').length"
QUIET_S = 2.0  # without a further file
# from a key press in the filter until the list is filtered
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
    """Measure the page. Raises OSError if Chromium is not installed."""
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
    spec = (await place.store.catalogue.find("orders")).spec
    for first in range(0, QUEUES, 50):
        await asyncio.gather(
            *(
                place.store.catalogue.declare(f"z{number:04}", spec, "test")
                for number in range(first, first + 50)
            )
        )


async def loads(browser: Browser, address: str) -> dict[str, Any]:
    """Return the medians of several loads with an empty cache."""
    rounds = [await load(browser, address) for _ in range(LOADS)]
    return {name: round(statistics.median(each[name] for each in rounds)) for name in rounds[0]}


async def load(browser: Browser, address: str) -> dict[str, float]:
    """Measure a first visit to the list of queues, then to the overview, which draws the first plot."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, extra_http_headers=HEADERS)
    page = await context.new_page()
    wire = await Wire.of(page)
    await page.goto(f"{address}#/queues")
    await page.wait_for_selector("table[aria-label=Queues] tbody tr")
    first = wire.octets
    listed = await page.evaluate(NOW)
    paint = await page.evaluate(PAINT)
    await until_all_is_there(page)
    whole, requests, api_octets = wire.octets, len(wire.files), wire.api_octets
    await page.goto(f"{address}#/overview")
    await page.wait_for_selector(".plot canvas")
    await until_all_is_there(page)
    plotted = wire.octets
    await context.close()
    return {
        **{"octets": whole, "until the list is there": first, "with the first plot": plotted},
        **{"requests": requests, "API responses": api_octets, "first paint": paint, "list there": listed},
    }


async def until_all_is_there(page: Page) -> None:
    """Wait until no more files are loaded: those loaded after the first view count too."""
    seen, now = -1, 0
    while seen != now:
        await asyncio.sleep(QUIET_S)
        seen, now = now, await page.evaluate(FILES)


class Wire:
    """The octets that Chromium received: of each file with its headers, and separately of the API."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.api_octets = 0
        self._api: set[str] = set()

    @property
    def octets(self) -> int:
        return sum(self.files.values())

    @classmethod
    async def of(cls, page: Page) -> Wire:
        made = cls()
        session: CDPSession = await page.context.new_cdp_session(page)
        await session.send("Network.enable")
        session.on("Network.responseReceived", made._began)
        session.on("Network.dataReceived", made._came)
        session.on("Network.loadingFinished", made._ended)
        return made

    def _began(self, event: dict[str, Any]) -> None:
        if "/api/" in event["response"]["url"]:
            self._api.add(event["requestId"])

    def _came(self, event: dict[str, Any]) -> None:
        """Count received data of the live view, which never ends; its headers do not count."""
        if event["requestId"] in self._api:
            self.api_octets += int(event["encodedDataLength"] or event["dataLength"])

    def _ended(self, event: dict[str, Any]) -> None:
        if event["requestId"] not in self._api:
            self.files[event["requestId"]] = int(event["encodedDataLength"])


async def watched(browser: Browser, address: str) -> dict[str, Any]:
    page = await browser.new_page(viewport={"width": 1280, "height": 800}, extra_http_headers=HEADERS)
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
    metrics = await session.send("Performance.getMetrics")
    return next(float(each["value"]) for each in metrics["metrics"] if each["name"] == "TaskDuration")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    found = asyncio.run(measure())
    for name, value in found.items():
        print(f"{name:18} {value:>10,}")
    if wanted.json:
        wanted.json.write_text(json.dumps(found, indent=2) + "\n")
