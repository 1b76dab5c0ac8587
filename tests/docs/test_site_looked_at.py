"""Check the site in a real browser that can reach only the site's server."""

from __future__ import annotations

import asyncio
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import PATIENCE_S, Browser, browser

FIND = """
(() => { const field = document.querySelector(".md-search__input");
         field.focus(); field.value = %r; field.dispatchEvent(new Event("input", {bubbles: true}));
         field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true})); })()
"""
FOUND = "[...document.querySelectorAll('.md-search-result__link')].map(each => each.href)"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
SCROLLING = (
    "[...document.querySelectorAll('.doc-signature code')].filter(e => e.scrollWidth > e.clientWidth).length"
)
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def home(site: Path) -> Iterator[str]:
    """Yield the address of the site."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


async def soon(tab: Browser, expression: str) -> Any:
    """Return the value of an expression as soon as it has one."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if value := await tab.value(expression):
                return value
            await asyncio.sleep(0.1)


async def test_search_works_and_pages_fit_a_phone_in_both_schemes(home: str, tmp_path: Path) -> None:
    """Check search and appearance in light and dark mode and on a phone, without requests to other servers."""
    async with browser(tmp_path) as tab:
        await tab.open(home)
        await tab.value(FIND % "msgsnd")
        assert any("/sysv/" in link for link in await soon(tab, FOUND))
        foreign = [url for url in tab.requests if not url.startswith((home, "data:", "blob:"))]
        assert (foreign, tab.complaints) == ([], [])
        seen = []
        for scheme in ("light", "dark"):
            await tab.set_viewport(width=400, scheme=scheme)
            await tab.open(f"{home}guarantees/")
            seen.append(await tab.value(BACKGROUND))
            assert await tab.value(TOO_WIDE) <= 0
        await tab.open(f"{home}reference/api/store/")
        assert await tab.value(TOO_WIDE) <= 0
        assert await tab.value(SCROLLING) == 0
        assert seen[0] != seen[1]
