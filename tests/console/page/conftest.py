"""Debian's Chromium, driven by Playwright, on a console of its own. A page that complains fails its test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from tests.console.local import HEADERS
from tests.console.page.looking import PATIENCE_MS, show, watched
from tests.console.page.scene import Scene, scene

MODULE = {"scope": "module", "loop_scope": "module"}


@pytest_asyncio.fixture(**MODULE)
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """For all tests of a file: they leave what others count on."""
    async with scene(tmp_path_factory.mktemp("scene")) as made:
        yield made


@pytest_asyncio.fixture(**MODULE)
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """The same, where a token is asked for."""
    async with scene(tmp_path_factory.mktemp("guarded"), tokens=True, ring=False) as made:
        yield made


@pytest_asyncio.fixture(**MODULE)
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "there is no chromium: tools/system test"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the page complained of, in its test."""
    return []


@pytest_asyncio.fixture(loop_scope="module")
async def page(
    chromium: Browser, complaints: list[str], request: pytest.FixtureRequest
) -> AsyncIterator[Page]:
    """A new window, 1280 px wide, with the local token; whatever it complains of fails the test."""
    headers = {} if "guarded" in request.fixturenames else HEADERS
    context = await chromium.new_context(viewport={"width": 1280, "height": 800}, extra_http_headers=headers)
    context.set_default_timeout(PATIENCE_MS)
    made = await context.new_page()
    watched(made, complaints)
    yield made
    await context.close()
    assert complaints == []


@pytest_asyncio.fixture(**MODULE)
async def ready(place: Scene, chromium: Browser) -> AsyncIterator[Page]:
    """For tests of modules: one window for all, as modules keep nothing of a call."""
    page = await chromium.new_page(extra_http_headers=HEADERS)
    await show(page, place.address, "config")
    yield page
    await page.close()
