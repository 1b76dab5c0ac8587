"""List the documentation's pictures of the page, with the actions before each is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from playwright.async_api import Page, expect


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    route: str
    width: int = 1280
    scheme: str = "light"
    height: int = 860
    is_whole: bool = False  # all of the page, at any length
    who: str = "ann"  # the user whose token is used

    @property
    def file(self) -> str:
        return f"{self.name}-{self.width}-{self.scheme}.png"


PICTURES = (
    Picture("overview", "overview", height=900),
    Picture("overview", "overview", scheme="dark", height=900),
    Picture("overview", "overview", 400, "dark", is_whole=True),
    Picture("queues", "queues", height=720),
    Picture("queue", "queues/orders?minutes=15", height=1000),
    Picture("queue", "queues/orders?minutes=15", scheme="dark", height=1000),
    Picture("dead", "dead", height=720),
    Picture("letters", "queues/returns/dead"),
    Picture("letter", "queues/returns/dead", scheme="dark"),
    Picture("redrive", "queues/returns/dead"),
    Picture("connections", "connections"),
    Picture("edges", "edges", scheme="dark", height=720),
    Picture("ring", "ring", height=720),
    Picture("ring", "ring", scheme="dark", height=720),
    Picture("peers", "peers", height=720),
    Picture("jobs", "jobs", height=720),
    Picture("report", "report", height=1200),
    Picture("audit", "audit", scheme="dark", height=720),
)

DIALOGS = {  # name → route, button that opens it; the picture `redrive` has its own actions
    "new-queue": ("queues", "New queue…"),
    "publish": ("queues/orders", "Publish…"),
    "purge-queue": ("queues/orders", "Purge queue…"),
    "delete-queue": ("queues/orders", "Delete…"),
    "redrive": ("queues/returns/dead", "Redrive…"),
    "purge-dead": ("queues/returns/dead", "Purge…"),
    "close-connection": ("connections", "Close 127.0.0.1"),
    "new-peer": ("peers", "New peer…"),
    "delete-peer": ("peers/warehouse", "Delete…"),
}


async def open_dead_letter(page: Page) -> None:
    """Open a dead letter with a number that JavaScript would round."""
    await page.locator("tbody tr").nth(1).get_by_role("link").click()
    await page.locator(".body pre").wait_for()


async def count_a_redrive(page: Page) -> None:
    rows = page.locator("tbody tr")
    for number in (1, 2, 4):
        await rows.nth(number).get_by_role("checkbox").check()
    await page.get_by_role("button", name="Redrive…").click()
    await page.get_by_label("Target queue").fill("repaired")  # their own queue is full
    await page.get_by_text("will be moved").wait_for()


async def wait_for_ring(page: Page) -> None:
    await expect(page.get_by_role("img", name="Ring of group")).to_be_visible()


async def open_dialog(page: Page, button: str) -> None:
    await page.locator("main").get_by_role("button", name=button).first.click()
    await expect(page.locator("dialog[open]")).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


CHANGES: dict[str, Callable[[Page], Awaitable[None]]] = {
    **{name: partial(open_dialog, button=button) for name, (_, button) in DIALOGS.items()},
    "letter": open_dead_letter,
    "redrive": count_a_redrive,
    "ring": wait_for_ring,
}
