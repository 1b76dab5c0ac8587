"""Test the link with the local token that the console prints."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.console.local import TOKEN
from tests.console.page.browsing import settled
from tests.console.page.scene import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_link_signs_in_and_token_is_removed_from_the_address(place: Scene, new_tab: Page) -> None:
    page = new_tab
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(place.address)
    await expect(page.locator(".signin")).to_contain_text("console.token")
    await page.goto(f"{place.address}#token={TOKEN}")  # in a tab that already has the page
    await expect(page.locator("main h1")).to_have_text("Overview")
    await settled(page)
    assert page.url == place.address
    await page.reload()
    await settled(page)  # for this session
    await page.get_by_role("link", name="Audit log").click()
    await expect(page.locator("main h1")).to_have_text("Audit log")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.locator(".signin")).to_be_visible()
    await page.goto("about:blank")
    await page.goto(f"{place.address}#token={TOKEN}")  # as a new tab opens it
    await settled(page)
    assert await page.evaluate("location.hash") == ""
    await page.go_back()
    assert TOKEN not in page.url
    assert not any(TOKEN in url for url in asked if "#" not in url)


async def test_link_does_not_replace_a_valid_token(place: Scene, new_tab: Page) -> None:
    page = new_tab
    keep = "sessionStorage.setItem('penstock.token', '%s')"
    kept = "sessionStorage.getItem('penstock.token')"
    for broken in ("%zz", "%E6%B3%A8"):  # no escape, and no valid text of a header
        await page.goto(f"{place.address}#token={broken}")
        await expect(page.locator(".signin")).to_be_visible()
        assert page.url == place.address
        await page.goto("about:blank")
    await page.goto(f"{place.address}#token={TOKEN}")
    await settled(page)
    for other in ("token-of-another-user", "%zz"):
        await page.goto("about:blank")
        await page.goto(f"{place.address}#token={other}")
        await settled(page)
        assert await page.evaluate(kept) == TOKEN
        assert page.url == place.address
        notices = page.locator(
            ".notice", has_text="You are still signed in as local: the link's token was not used"
        )
        await expect(notices).to_have_count(1 if other != "%zz" else 0)
    await page.evaluate(keep % "a-token-that-was-withdrawn")
    await page.goto("about:blank")
    await page.goto(f"{place.address}#token={TOKEN}")
    await expect(page.locator(".notice")).to_contain_text(
        "with the link's token, because the previous token was rejected"
    )
    assert await page.evaluate(kept) == TOKEN
