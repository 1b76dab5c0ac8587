"""python -m tests.console.page.pictures FOLDER: pictures of the page on live data, for the documentation and for
whoever changes the page. Each view at 1280 and 400 px, light and dark; `--few` are those that the documentation shows.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from itertools import product
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from tests.console.page.looking import VIEWS, show
from tests.console.page.scene import Scene, scene

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
GROWN_S = 90.0  # until plots have something to show
GROWING = "overview"  # draws what it has seen itself
FEW = [  # route, width, scheme
    ("overview", 1280, "light"),
    ("queues/orders", 1280, "dark"),
    ("queues/returns/dead", 1280, "light"),
    ("ring", 1280, "dark"),
    ("connections", 1280, "light"),
    ("overview", 400, "dark"),
]


async def main(folder: Path, few: bool) -> None:
    with tempfile.TemporaryDirectory() as data:
        async with scene(Path(data)) as place, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            wanted = FEW if few else list(product(VIEWS, WIDTHS, SCHEMES))
            pages = {each: await opened(browser, *each[1:]) for each in wanted if each[0] == GROWING}
            for page in pages.values():
                await show(page, place.address, GROWING)
            await asyncio.sleep(GROWN_S)
            for each in wanted:
                await take(pages.get(each) or await opened(browser, *each[1:]), place, folder, each)
            await dialogs(browser, place, folder)
            await browser.close()


async def take(page: Page, place: Scene, folder: Path, what: tuple[str, int, str]) -> None:
    route, width, scheme = what
    await show(page, place.address, route)
    await page.wait_for_function("document.fonts.status === 'loaded'")
    path = folder / f"{route.replace('/', '-')}-{width}-{scheme}.png"
    await page.screenshot(path=path, full_page=width == 400)
    await page.close()


async def opened(browser: Browser, width: int, scheme: str) -> Page:
    how = {"color_scheme": scheme, "reduced_motion": "reduce"}
    return await browser.new_page(viewport={"width": width, "height": 860}, **how)  # type: ignore[arg-type]


async def dialogs(browser: Browser, place: Scene, folder: Path) -> None:
    """A letter, and a redrive that has been counted."""
    page = await opened(browser, 1280, "light")
    await show(page, place.address, "queues/returns/dead")
    rows = page.locator("tbody tr")
    for number in (1, 2, 4):
        await rows.nth(number).get_by_role("checkbox").check()
    await page.get_by_role("button", name="Redrive…").click()
    await page.get_by_label("Into").fill("invoices")  # their own queue is full
    await page.get_by_text("would go back").wait_for()
    await page.screenshot(path=folder / "redrive-1280-light.png")
    await page.keyboard.press("Escape")
    await rows.nth(1).get_by_role("link").click()
    await page.locator(".body pre").wait_for()
    await page.screenshot(path=folder / "letter-1280-light.png")
    await page.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--few", action="store_true")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(wanted.folder, wanted.few))
