"""Test signing in, and which buttons each role sees."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.console.page.browsing import axe, settled, show
from tests.console.page.scene import TOKENS, Console

pytestmark = pytest.mark.asyncio(loop_scope="session")
STORED = "sessionStorage.getItem('penstock.token')"
# buttons in each view, besides those that only show data
BUTTONS = {
    "queues": {"view": [], "operate": [], "admin": ["New queue…"]},
    "queues/orders": {
        "view": [],
        "operate": ["Publish…"],
        "admin": ["Publish…", "Pause", "Purge queue…", "Delete…"],
    },
    "queues/orders/document": {
        "view": [],
        "operate": ["Publish…"],
        "admin": ["Publish…", "Pause", "Purge queue…", "Delete…", "Edit"],
    },
    "queues/returns/dead": {
        "view": [],
        "operate": ["Publish…", "Redrive…", "Purge…"],
        "admin": ["Publish…", "Pause", "Purge queue…", "Delete…", "Redrive…", "Purge…"],
    },
    "peers": {"view": [], "operate": [], "admin": ["New peer…"]},
    "peers/warehouse": {"view": [], "operate": [], "admin": ["Delete…", "Edit"]},
}
HARMLESS = {"Copy", "Refresh", "Try again", "15 min", "1 h", "6 h", "24 h"}
HARMLESS |= {"\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"}  # the rest of a row
HARMLESS |= {"All", "With dead letters", "No consumers", "Paused", "Forwarded"}


async def sign_in(page: Page, console: Console, token: str) -> None:
    await page.goto(console.address)
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def test_sign_in_requires_a_valid_token(guarded: Console, stranger: Page) -> None:
    await stranger.goto(f"{guarded.address}#/queues")
    await expect(stranger.get_by_label("Token")).to_be_visible()
    await expect(stranger.get_by_text("orders")).to_have_count(0)
    assert await axe(stranger) == []
    await sign_in(stranger, guarded, "wrong")
    await expect(stranger.get_by_text("rejected this token")).to_be_visible()
    assert await stranger.evaluate(STORED) is None
    assert await axe(stranger) == []


async def test_the_token_stays_in_the_tab_until_the_user_signs_out(guarded: Console, stranger: Page) -> None:
    await stranger.goto(f"{guarded.address}#/queues")
    await stranger.get_by_label("Token").fill(TOKENS["admin"])
    await stranger.keyboard.press("Enter")
    await expect(stranger.locator("main h1")).to_have_text("Queues")
    await settled(stranger)
    await stranger.reload()
    await settled(stranger)
    await expect(stranger.locator(".who")).to_contain_text("admin person")
    version = await stranger.locator(".about span").bounding_box()
    key = await stranger.get_by_role("button", name="Keyboard shortcuts").bounding_box()
    assert version is not None
    assert key is not None
    assert key["y"] < version["y"] + version["height"] / 2 < key["y"] + key["height"]  # on one line
    assert await stranger.evaluate("Object.keys(localStorage).length") == 0
    await stranger.get_by_role("button", name="Sign out").click()
    await expect(stranger.get_by_text("You have signed out")).to_be_visible()
    assert await stranger.evaluate(STORED) is None
    state = "import('./state.js').then(m => [m.queues.value.size, m.overview.value, m.link.value.state])"
    await stranger.wait_for_function(
        f"{state}.then(([n, told, link]) => n === 0 && told === null && link === 'lost')"
    )
    await stranger.reload()
    await expect(stranger.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize("role", TOKENS)
async def test_roles_see_only_permitted_buttons_and_views(
    guarded: Console, stranger: Page, role: str
) -> None:
    page = stranger
    await sign_in(page, guarded, TOKENS[role])
    await expect(page.locator(".who")).to_contain_text(role)
    for route, wanted in BUTTONS.items():
        await show(page, guarded.address, route, route.split("/")[1] if "/" in route else None)
        shown = await page.locator("main button:not(.sort)").all_text_contents()
        assert sorted({each.strip() for each in shown} - HARMLESS) == sorted(wanted[role]), route
        assert await page.locator("main input[type=checkbox]").count() == 0 or role != "view"
    ways = page.get_by_role("navigation", name="Views")
    for name in ("Audit log", "Settings"):
        await expect(ways.get_by_role("link", name=name)).to_have_count(int(role == "admin"))
    for route in ("audit", "config") if role != "admin" else ():
        await page.goto(f"{guarded.address}#/{route}")
        await settled(page)
        needs = f"This view requires the role admin; your role is {role}."
        await expect(page.locator("main")).to_contain_text(needs)
        await expect(page.locator("main input, main button, main [role=alert]")).to_have_count(0)


async def test_revoked_token_leads_to_the_sign_in_form(guarded: Console, stranger: Page) -> None:
    await sign_in(stranger, guarded, TOKENS["view"])
    await settled(stranger)
    await stranger.evaluate("sessionStorage.setItem('penstock.token', 'no longer')")
    await stranger.reload()
    await expect(stranger.get_by_label("Token")).to_be_visible()
