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


async def test_sign_in_requires_a_valid_token(guarded: Console, new_tab: Page) -> None:
    await new_tab.goto(f"{guarded.address}#/queues")
    await expect(new_tab.get_by_label("Token")).to_be_visible()
    await expect(new_tab.get_by_text("orders")).to_have_count(0)
    assert await axe(new_tab) == []
    await sign_in(new_tab, guarded, "wrong")
    await expect(new_tab.get_by_text("rejected this token")).to_be_visible()
    assert await new_tab.evaluate(STORED) is None
    assert await axe(new_tab) == []


async def test_the_token_stays_in_the_tab_until_the_user_signs_out(guarded: Console, new_tab: Page) -> None:
    await new_tab.goto(f"{guarded.address}#/queues")
    await new_tab.get_by_label("Token").fill(TOKENS["admin"])
    await new_tab.keyboard.press("Enter")
    await expect(new_tab.locator("main h1")).to_have_text("Queues")
    await settled(new_tab)
    await new_tab.reload()
    await settled(new_tab)
    await expect(new_tab.locator(".who")).to_contain_text("admin person")
    version = await new_tab.locator(".about span").bounding_box()
    key = await new_tab.get_by_role("button", name="Keyboard shortcuts").bounding_box()
    assert version is not None
    assert key is not None
    assert key["y"] < version["y"] + version["height"] / 2 < key["y"] + key["height"]  # on one line
    assert await new_tab.evaluate("Object.keys(localStorage).length") == 0
    await new_tab.get_by_role("button", name="Sign out").click()
    await expect(new_tab.get_by_text("You have signed out")).to_be_visible()
    assert await new_tab.evaluate(STORED) is None
    state = "import('./state.js').then(m => [m.queues.value.size, m.overview.value, m.link.value.state])"
    await new_tab.wait_for_function(
        f"{state}.then(([n, overview, link]) => n === 0 && overview === null && link === 'lost')"
    )
    await new_tab.reload()
    await expect(new_tab.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize("role", TOKENS)
async def test_roles_see_only_permitted_buttons_and_views(guarded: Console, new_tab: Page, role: str) -> None:
    page = new_tab
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


async def test_revoked_token_leads_to_the_sign_in_form(guarded: Console, new_tab: Page) -> None:
    await sign_in(new_tab, guarded, TOKENS["view"])
    await settled(new_tab)
    await new_tab.evaluate("sessionStorage.setItem('penstock.token', 'no longer')")
    await new_tab.reload()
    await expect(new_tab.get_by_label("Token")).to_be_visible()
