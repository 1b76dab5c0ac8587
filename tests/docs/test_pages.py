"""The pages hold together: every link between them leads somewhere, every metric they name is counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "protos/*.md", "tests/vectors/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
METRIC = re.compile(r"`penstock_([a-z_]+?)(?:_total)?(?:\{[^}]*\})?`")
MADE = re.compile(r"(?:[cC]ounter|[gG]auge|[hH]istogram)\(\s*\"(?:penstock_)?([a-z_]+)\"")
MADE_IN = ("services", "operator")


def anchors(page: Path) -> set[str]:
    """As those who show Markdown make them of headings."""
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
    sources = [path for folder in MADE_IN for path in (ROOT / folder).rglob("*.py")]
    made = {name for path in sources for name in MADE.findall(path.read_text())}
    for page in PAGES:
        assert set(METRIC.findall(page.read_text())) <= made, page.name
