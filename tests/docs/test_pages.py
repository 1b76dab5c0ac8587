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


def test_metrics_that_are_told_are_there() -> None:
    made = {row.measure.name for row in rows()}
    for page in PAGES:
        assert set(METRIC.findall(page.read_text())) <= made, page.name


def test_each_picture_is_shown() -> None:
    shown = {(page.parent / target).resolve() for page in PAGES for target in LINK.findall(page.read_text())}
    there = set((ROOT / "docs" / "pictures").rglob("*.png"))
    assert there
    assert there <= shown
