"""Run Debian's Chromium by Playwright on a scene; both are started once for this package.

Errors of a page fail its test.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.console.local import HEADERS
from tests.console.page.browsing import PATIENCE_MS, show, watched
from tests.console.page.scene import Console, Scene, scene

SHARED = {"scope": "package", "loop_scope": "session"}
MODULE = {"scope": "module", "loop_scope": "session"}


@pytest_asyncio.fixture(**SHARED)
async def started(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with scene(tmp_path_factory.mktemp("scene"), pace_s=0.1) as made:
        yield made


@pytest_asyncio.fixture(**MODULE)
async def place(started: Scene) -> Scene:
    """Return the scene, reset for this module."""
    await started.reset()
    return started


@pytest_asyncio.fixture(**MODULE)
async def guarded(place: Scene) -> AsyncIterator[Console]:
    """Yield a second console on the scene, which requires a token."""
    async with place.guarded() as console:
        yield console


@pytest_asyncio.fixture(**SHARED)
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "there is no chromium: tools/system test"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(**SHARED)
async def signed_in(chromium: Browser) -> AsyncIterator[BrowserContext]:
    """Yield a context that sends the local token; its pages share the browser's cache."""
    async with await _context(chromium, HEADERS) as context:
        yield context


@pytest_asyncio.fixture(**SHARED)
async def signed_out(chromium: Browser) -> AsyncIterator[BrowserContext]:
    async with await _context(chromium, {}) as context:
        yield context


async def _context(chromium: Browser, headers: dict[str, str]) -> BrowserContext:
    size = {"width": 1280, "height": 800}
    context = await chromium.new_context(viewport=size, extra_http_headers=headers, reduced_motion="reduce")  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture
def complaints() -> list[str]:
    """Return a list for errors of the page during a test."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def page(signed_in: BrowserContext, complaints: list[str]) -> AsyncIterator[Page]:
    """Yield a new tab, 1280 px wide, with the local token; errors of the page fail the test."""
    page = await signed_in.new_page()
    watched(page, complaints)
    yield page
    await page.close()
    assert complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def new_tab(signed_out: BrowserContext, complaints: list[str]) -> AsyncIterator[Page]:
    """Yield a new tab without a token."""
    page = await signed_out.new_page()
    watched(page, complaints)
    yield page
    await page.close()
    assert complaints == []


@pytest_asyncio.fixture(**MODULE)
async def ready(place: Scene, signed_in: BrowserContext) -> AsyncIterator[Page]:
    """Yield one tab for all tests of modules, which keep no state between calls."""
    page = await signed_in.new_page()
    await show(page, place.address, "config")
    yield page
    await page.close()
