"""The link that a console without set-up prints: it signs in, and the token does not stay in the address."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.console.local import TOKEN
from tests.console.page.looking import PATIENCE_MS, settled
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_link_signs_in_and_the_token_leaves_the_address(place: Scene, chromium: Browser) -> None:
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(place.address)
    await expect(page.locator(".signin")).to_contain_text("console.token")
    await page.goto(f"{place.address}#token={TOKEN}")  # in a tab that has the page already
    await expect(page.locator("main h1")).to_have_text("Overview")
    await settled(page)
    assert page.url == place.address
    await page.reload()
    await settled(page)  # for this session
    await page.get_by_role("link", name="Audit").click()
    await expect(page.locator("main h1")).to_have_text("Audit")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.locator(".signin")).to_be_visible()
    await page.goto("about:blank")
    await page.goto(f"{place.address}#token={TOKEN}")  # as a new tab opens it
    await settled(page)
    assert await page.evaluate("location.hash") == ""
    await page.go_back()
    assert TOKEN not in page.url
    assert not any(TOKEN in url for url in asked if "#" not in url)
    await context.close()
