"""Who may see what: the sign-in, and buttons only for those whose role is enough."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.console.page.looking import axe, settled, show
from tests.console.page.scene import TOKENS, Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")
STORED = "sessionStorage.getItem('penstock.token')"
# what is to be pressed in each view, beside what only looks
BUTTONS = {
    "queues": {"view": [], "operate": [], "admin": ["New queue"]},
    "queues/orders": {"view": [], "operate": ["Publish"], "admin": ["Publish", "Pause", "Empty…", "Delete"]},
    "queues/orders/document": {
        "view": [],
        "operate": ["Publish"],
        "admin": ["Publish", "Pause", "Empty…", "Delete", "Change"],
    },
    "queues/returns/dead": {
        "view": [],
        "operate": ["Publish", "Redrive…", "Purge…"],
        "admin": ["Publish", "Pause", "Empty…", "Delete", "Redrive…", "Purge…"],
    },
    "peers": {"view": [], "operate": [], "admin": ["New peer"]},
    "peers/warehouse": {"view": [], "operate": [], "admin": ["Delete", "Change"]},
}
HARMLESS = {"Copy", "Look again", "Try again", "15 min", "1 h", "6 h", "24 h"}
HARMLESS |= {"\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"}  # the rest of a row
HARMLESS |= {"All", "With dead letters", "Nobody takes", "Paused", "Lead elsewhere"}


async def sign_in(page: Page, place: Scene, token: str) -> None:
    await page.goto(place.address)
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def test_nothing_is_told_without_a_token(guarded: Scene, page: Page) -> None:
    await page.goto(f"{guarded.address}#/queues")
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(page.get_by_text("orders")).to_have_count(0)
    assert await axe(page) == []


async def test_help_stands_beside_the_version(guarded: Scene, page: Page) -> None:
    """Who signed in has the line before: there is no room for it there."""
    await sign_in(page, guarded, TOKENS["view"])
    await settled(page)
    version = await page.locator(".about span").bounding_box()
    key = await page.get_by_role("button", name="Keyboard and help").bounding_box()
    assert version is not None
    assert key is not None
    assert key["y"] < version["y"] + version["height"] / 2 < key["y"] + key["height"]


async def test_a_wrong_token_is_refused_in_words(guarded: Scene, page: Page) -> None:
    await sign_in(page, guarded, "wrong")
    await expect(page.get_by_text("did not take this token")).to_be_visible()
    assert await page.evaluate(STORED) is None
    assert await axe(page) == []


async def test_the_token_stays_in_the_tab_until_one_signs_out(guarded: Scene, page: Page) -> None:
    await page.goto(f"{guarded.address}#/queues")
    await page.get_by_label("Token").fill(TOKENS["admin"])
    await page.keyboard.press("Enter")
    await expect(page.locator("main h1")).to_have_text("Queues")
    await settled(page)
    await page.reload()
    await settled(page)
    await expect(page.locator(".who")).to_contain_text("admin person")
    assert await page.evaluate("Object.keys(localStorage).length") == 0
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_text("You are signed out")).to_be_visible()
    assert await page.evaluate(STORED) is None
    await page.reload()
    await expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize("role", TOKENS)
async def test_buttons_are_for_those_who_may(guarded: Scene, page: Page, role: str) -> None:
    await sign_in(page, guarded, TOKENS[role])
    await expect(page.locator(".who")).to_contain_text(role)
    for route, wanted in BUTTONS.items():
        await show(page, guarded.address, route, route.split("/")[1] if "/" in route else None)
        shown = await page.locator("main button:not(.sort)").all_text_contents()
        assert sorted({each.strip() for each in shown} - HARMLESS) == sorted(wanted[role]), route
        assert await page.locator("main input[type=checkbox]").count() == 0 or role != "view"


@pytest.mark.parametrize("role", TOKENS)
async def test_audit_and_settings_are_for_the_administrator(guarded: Scene, page: Page, role: str) -> None:
    await sign_in(page, guarded, TOKENS[role])
    await expect(page.locator(".who")).to_contain_text(role)
    ways = page.get_by_role("navigation", name="Views")
    for name in ("Audit", "Settings"):
        await expect(ways.get_by_role("link", name=name)).to_have_count(int(role == "admin"))
    for route in ("audit", "config"):
        await page.goto(f"{guarded.address}#/{route}")
        await settled(page)
        if role != "admin":
            await expect(page.locator("main")).to_contain_text(
                f"This needs the role admin, and yours is {role}."
            )
            await expect(page.locator("main input, main button, main [role=alert]")).to_have_count(0)


async def test_a_token_that_is_withdrawn_leads_to_the_sign_in(guarded: Scene, page: Page) -> None:
    await sign_in(page, guarded, TOKENS["view"])
    await settled(page)
    await page.evaluate("sessionStorage.setItem('penstock.token', 'no longer')")
    await page.reload()
    await expect(page.get_by_label("Token")).to_be_visible()


async def test_who_signs_out_is_told_nothing_more(guarded: Scene, page: Page) -> None:
    await sign_in(page, guarded, TOKENS["view"])
    await settled(page)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    state = "import('./state.js').then(m => [m.queues.value.size, m.overview.value, m.link.value.state])"
    await page.wait_for_function(
        f"{state}.then(([n, told, link]) => n === 0 && told === null && link === 'lost')"
    )
