"""Test the page in a real browser: light and dark, wide and narrow, with hostile texts."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from services.analytics.report.figures import make
from services.analytics.report.page import page
from tests.analytics.report.rows import HOSTILE, some, tables
from tests.analytics.report.test_figures import OF
from tests.browser import Browser, browser
from tests.reports import report

PICTURES = os.environ.get("PENSTOCK_TEST_PICTURES")  # a folder for screenshots
PAGES = {
    "usual": lambda: report(),
    "hostile": lambda: make(tables(some(random.Random(7), 24, HOSTILE), 24), OF),
    "week": lambda: make(tables(some(random.Random(8), 168, ("orders", "bills")), 168), OF),
    "empty": lambda: make(tables({}, 24), OF),
}
NARROW, WIDE = 400, 1280

# Every visible text with its contrast to the background (WCAG 2.1, 1.4.3).
CONTRASTS = """
(() => {
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const colour = node.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const both = [light(parse(colour)), light(behind(node))].sort((a, b) => b - a);
    found.push([(both[0] + .05) / (both[1] + .05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
})()
"""
# The caption, number of headers and cells of each table.
TABLES = """
[...document.querySelectorAll('table')].map(table => ({
  caption: table.caption ? table.caption.textContent : '',
  heads: table.querySelectorAll('thead th[scope=col]').length,
  cells: [...table.tBodies[0].rows].map(row => row.cells.length),
}))
"""
# The font size in pixels of each visible text of a plot.
SIZES = """
[...document.querySelectorAll('figure svg text')]
  .filter(text => text.getClientRects().length && text.textContent.trim())
  .map(text => [parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a, text.textContent])
"""
# Texts of a plot that overlap or are cut off.
OVERLAPS = """
[...document.querySelectorAll('figure svg')].filter(svg => svg.getClientRects().length).flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect();
  const cut = texts.filter(([, a]) => a.left < frame.left - 1 || a.right > frame.right + 1);
  const over = texts.filter(([, a], at) => texts.slice(at + 1).some(([, b]) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3));
  return [...cut, ...over].map(([text]) => text);
})
"""


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Browser]:
    folder = tmp_path / "browser"
    folder.mkdir()
    async with browser(folder) as tab:
        yield tab


@cache
def written(name: str) -> str:
    return page(PAGES[name]())


async def shown(tab: Browser, folder: Path, name: str) -> str:
    path = folder / f"{name}.html"
    path.write_text(written(name))
    await tab.open(path.as_uri())
    return path.as_uri()


def keep(name: str, picture: bytes) -> None:
    (Path(PICTURES or ".") / f"{name}.png").write_bytes(picture)


async def test_it_is_whole_quiet_and_fits(tab: Browser, tmp_path: Path) -> None:
    for name, scheme, width in product(PAGES, ("light", "dark"), (NARROW, WIDE)):
        await tab.set_viewport(width=width, scheme=scheme)
        address = await shown(tab, tmp_path, name)
        assert [each for each in tab.requests if each != "data:,"] == [address]
        assert tab.complaints == []
        assert await tab.value("document.documentElement.scrollWidth") <= width, name
        assert await tab.value("document.scripts.length + document.images.length") == 0
        assert await tab.value("typeof hit") == "undefined"
        if PICTURES:
            keep(f"{name}-{scheme}-{width}", await tab.picture())


async def test_every_text_can_be_told_from_what_is_behind_it(tab: Browser, tmp_path: Path) -> None:
    for name, scheme in product(("usual", "hostile"), ("light", "dark")):
        await tab.set_viewport(width=WIDE, scheme=scheme)
        await shown(tab, tmp_path, name)
        found = await tab.value(CONTRASTS)
        assert len(found) > 50
        assert [each for each in found if each[0] < 4.5] == [], (name, scheme)
        paper = await tab.value("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


async def test_tables_and_plots_say_what_they_are(tab: Browser, tmp_path: Path) -> None:
    for width in (NARROW, WIDE):
        await tab.set_viewport(width=width)
        await shown(tab, tmp_path, "usual")
        found: list[dict[str, Any]] = await tab.value(TABLES)
        assert len(found) > 8
        assert all(each["caption"] and set(each["cells"]) == {each["heads"]} for each in found)
        plots = await tab.value(
            "[...document.querySelectorAll('figure')].map(f => [f.querySelector('svg[role=img]').ariaLabel,"
            " f.querySelector('figcaption').textContent.trim(), f.getBoundingClientRect().width])"
        )
        assert len(plots) == 5
        assert all(label and caption and 300 < size <= width for label, caption, size in plots)


async def test_texts_in_plots_are_of_a_size_to_be_read(tab: Browser, tmp_path: Path) -> None:
    for name, width in product(("usual", "week"), (320, NARROW, 481, 700, WIDE)):
        await tab.set_viewport(width=width)
        await shown(tab, tmp_path, name)
        found: list[tuple[float, str]] = await tab.value(SIZES)
        assert len(found) > 40
        assert [each for each in found if not 10.5 <= each[0] <= 18] == [], (name, width)
        assert await tab.value(OVERLAPS) == [], (name, width)


async def test_a_row_is_a_block_with_its_heads_where_it_is_narrow(tab: Browser, tmp_path: Path) -> None:
    await tab.set_viewport(width=NARROW)
    await shown(tab, tmp_path, "usual")
    cell = "document.querySelector('section[aria-labelledby=queues] tbody td:nth-child(3)')"
    assert await tab.value(f"getComputedStyle({cell}, '::before').content") == '"Dead"'
    await tab.set_viewport(width=WIDE)
    assert await tab.value(f"getComputedStyle({cell}, '::before').content") == "none"
