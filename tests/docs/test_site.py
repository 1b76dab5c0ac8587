"""Check that the documentation site builds without a warning, loads nothing from elsewhere and lists each page."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools.site.markdown import slug, with_links, with_room
from tools.site.places import ROOT, SOURCES, pages_elsewhere, place

LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}
LOADED_RELS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "prefetch"}
ELSEWHERE = re.compile(r"^(https?:)?//")
IN_STYLES = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')]+)")


class Loads(HTMLParser):
    """Collect the resources of a page that a browser loads automatically."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(attributes.get("href", ""))
        elif tag == "link" and not LOADED_RELS & set(attributes.get("rel", "").split()):
            return
        elif tag in LOADED:
            self.found.append(attributes.get(LOADED[tag], ""))


@cache
def pages(site: Path) -> list[tuple[Path, str, Loads]]:
    found = []
    for path in sorted(site.rglob("*.html")):
        loads = Loads()
        loads.feed(text := path.read_text())
        found.append((path, text, loads))
    return found


def test_no_page_asks_for_anything_from_elsewhere(site: Path) -> None:
    for path, text, loads in pages(site):
        assert not [each for each in loads.found if ELSEWHERE.match(each)], path
        assert "mermaid" not in text, f"{path}: the theme would load a script from elsewhere"
    for path in site.rglob("*.css"):
        assert not IN_STYLES.findall(path.read_text()), path


def test_files_that_pages_load_exist(site: Path) -> None:
    for path, _, loads in pages(site):
        if path.name != "404.html":  # served at any address, so its paths are absolute
            for each in loads.found:
                if each.startswith("data:"):  # pictures of notebooks
                    continue
                assert (path.parent / each.partition("?")[0].partition("#")[0]).exists(), (path, each)


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """Check that the navigation has every page but those of sources, which are reached by links."""
    start = site / "index.html"
    (loads,) = [loads for path, _, loads in pages(site) if path == start]
    in_it = {
        (site / link.partition("#")[0] / "index.html").resolve() for link in loads.links if "://" not in link
    }
    all_pages = {path.resolve() for path in site.rglob("index.html")}
    sources = {path for path in all_pages if path.is_relative_to((site / SOURCES).resolve())}
    assert all_pages - sources <= in_it


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    for page in [*docs, *pages_elsewhere(), "README.md"]:
        where = Path(place(page))
        folder = where.parent if where.name in ("index.md", "README.md") else where.with_suffix("")
        assert (site / folder / "index.html").exists(), page


def test_lists_and_tables_are_lists_and_tables(site: Path) -> None:
    """Check that lists and tables are rendered as such, and not as paragraphs with hyphens and bars."""
    for path, text, _ in pages(site):
        prose = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", text, flags=re.S)
        for paragraph in re.findall(r"<p>(.*?)</p>", prose, re.S):
            assert not re.search(r"^\s*([-*] |\d+\. |\|.*\|)", paragraph, re.M), (path, paragraph)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("text\n- a\n- b\n", "text\n\n- a\n- b\n"),
        ("- a\n  more\n  - b\n", "- a\n    more\n    - b\n"),
        ("1. a\n\n   second\n2. b\n", "1. a\n\n    second\n2. b\n"),
        ("text\n| a |\n|---|\n| b |\n", "text\n\n| a |\n|---|\n| b |\n"),
        ("```\ntext\n- no list\n```\n", "```\ntext\n- no list\n```\n"),
        ("- a\n\ntext\n- b\n", "- a\n\ntext\n\n- b\n"),
    ],
)
def test_room_is_made(said: str, meant: str) -> None:
    assert with_room(said) == meant


def test_links_in_code_are_left_alone() -> None:
    def shout(link: str) -> str:
        return link.upper()

    said = "[a](b) `[a](b)` ``[a](`b)``\n```\n[a](b)\n```\n[a](b#c)"
    assert with_links(said, shout) == "[a](B) `[a](b)` ``[a](`b)``\n```\n[a](b)\n```\n[a](B#C)"


def test_anchors_are_those_of_code_hosts() -> None:
    assert slug("From a body to a MESSAGE") == "from-a-body-to-a-message"
    assert slug("Fast, safe & `small`") == "fast-safe--small"
