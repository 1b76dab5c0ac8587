"""Check that the pages are consistent: every link has a target, and every metric they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.metrics_docs import rows

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "protos/*.md", "tests/vectors/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
METRIC = re.compile(r"`(penstock_[a-z_]+[a-z])(?:\{[^}]*\})?`")
SOURCES = sorted(
    path
    for folder in ("benchmarks", "charts", "operator", "protos", "services", "tests", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".js", ".lua", ".py", ".yaml"} and "vendor" not in path.parts
)
NEXT_LINE = re.compile(r"\s*\n\s*(?:#|--|//)?\s*")
BOLD = re.compile(r"\*\*([^*]+?)\.?\*\*")
# a page, a comma, and sections: each in quotes, or one without
QUOTED = re.compile(r'((?:[\w-]+/)*[\w-]+\.md), ((?:"[^"]+"(?:, | and )?)+)')
UNQUOTED = re.compile(r"((?:[\w-]+/)*[\w-]+\.md), ([A-Z][^()]{,80})")


def anchors(page: Path) -> set[str]:
    """Return the anchors that Markdown renderers generate for headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        assert found.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(found), f"{page.name}: {target}"


def sections(page: Path) -> set[str]:
    """Return the headings of a page, and the bold words at the beginning of its paragraphs and items."""
    text = FENCE.sub("", page.read_text())
    return {heading.strip("`") for heading in re.findall(r"^#+ (.*)$", text, re.M)} | set(BOLD.findall(text))


def unknown_sections(text: str) -> list[str]:
    """Return the sections of pages that the text names but that do not exist."""
    text = NEXT_LINE.sub(" ", text)
    unknown = []
    for page, quoted in QUOTED.findall(text):
        path = ROOT / page
        named = re.findall(r'"([^"]+)"', quoted)
        unknown += [f"{page}: {name}" for name in named if not path.exists() or name not in sections(path)]
    for page, words in UNQUOTED.findall(text):
        path = ROOT / page
        if path.exists() and not words.startswith(tuple(sections(path))):
            unknown.append(f"{page}: {words}")
    return unknown


def test_sections_named_in_code_exist() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in SOURCES}
    assert {path: found for path, text in texts.items() if (found := unknown_sections(text))} == {}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('{}, "Clocks".', []),
        ("{}, Clocks)", []),
        ('{},\n-- "Clocks", "Nowhere"', ["Nowhere"]),
        ("{},\n    # Nowhere)", ["Nowhere"]),
    ],
)
def test_missing_sections_are_found(text: str, missing: list[str]) -> None:
    page = "docs/store.md"
    assert unknown_sections(text.format(page)) == [f"{page}: {name}" for name in missing]


def test_documented_metrics_exist() -> None:
    made = {row.measure.name for row in rows()}
    for page in PAGES:
        assert set(METRIC.findall(page.read_text())) <= made, page.name


def test_each_picture_is_shown() -> None:
    shown = {(page.parent / target).resolve() for page in PAGES for target in LINK.findall(page.read_text())}
    there = set((ROOT / "docs" / "pictures").rglob("*.png"))
    assert there
    assert there <= shown
