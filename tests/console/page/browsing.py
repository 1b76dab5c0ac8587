"""Help tests of the page: open a view, wait for it, and check it with axe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.async_api import ConsoleMessage, Page, expect

DASH = "\N{EN DASH}"  # shown for unknown values
PATIENCE_MS = 30_000  # the longest wait for something that must happen; machines are shared
RULES = """{
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    resultTypes: ['violations'], // what is right is not described, which would take longer
}"""
AXE = Path(__file__).parent / "vendor" / "axe.js"
# tests cause refused fetches on purpose; Chromium logs them, however the page handles them
EXPECTED = re.compile(r"Failed to load resource: (the server responded with a status of 4|net::ERR_)")
VIEWS = {  # route → heading
    "overview": "Overview",
    "queues": "Queues",
    "queues/orders": "orders",
    "queues/orders/messages": "orders",
    "queues/returns/dead": "returns",
    "queues/orders/document": "orders",
    "dead": "Dead letters",
    "jobs": "Jobs",
    "edges": "Edges",
    "connections": "Connections",
    "ring": "Ring",
    "peers": "Peers",
    "peers/warehouse": "warehouse",
    "subscriptions": "Subscriptions",
    "reservations": "Reservations",
    "report": "Report",
    "audit": "Audit log",
    "config": "Settings",
}

expect.set_options(timeout=PATIENCE_MS)


def watched(page: Page, complaints: list[str]) -> None:
    """Collect errors and warnings of the browser's console, and uncaught errors, in `complaints`."""

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not EXPECTED.match(message.text):
            complaints.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))


async def show(page: Page, address: str, route: str, heading: str | None = None) -> None:
    """Open a view, and wait until its data are shown."""
    await page.goto(f"{address}#/{route}")
    await expect(page.locator("main h1")).to_have_text(heading or VIEWS[route])
    await settled(page)


async def settled(page: Page) -> None:
    """Wait until nothing is loading."""
    await expect(page.locator(".link.live")).to_be_attached()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


async def axe(page: Page) -> list[dict[str, Any]]:
    """Return axe's violations in the page, or in an open dialog: [{rule, where}]."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found = await page.evaluate(f"axe.run(document.querySelector('dialog[open]') ?? document, {RULES})")
    return [
        {"rule": each["id"], "where": [node["html"][:200] for node in each["nodes"]]}
        for each in found["violations"]
    ]


async def call(page: Page, module: str, expression: str, given: Any = None) -> Any:
    """Evaluate an expression of `m`, the imported module, and `given`."""
    script = f"async (given) => {{ const m = await import('./{module}'); return {expression}; }}"
    return await page.evaluate(script, given)
