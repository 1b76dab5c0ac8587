"""Check that no page offers Penstock from a package index, where another package has its name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import pages
from tests.tmq.process import ROOT

FROM_INDEX = re.compile(r"""\bpip3? install [^`\n]*?(?<![\w./-])penstock(?![\w./-])|['"`]penstock\[""")
NAMED = re.compile(r"(?:the extra|extra) `([^`]+)`")
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("services", "operator", "charts", "tools")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".yaml", ".tpl", ".txt", ".html", ".js") and "node_modules" not in path.parts
]


def text(name: str) -> str:
    return Path(ROOT / name).read_text()


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    return found


def test_no_page_installs_from_a_package_index() -> None:
    assert {
        name: found[0] for name in [*pages(), *SOURCES] if (found := FROM_INDEX.findall(text(name)))
    } == {}


@pytest.mark.parametrize(
    ("line", "is_index"),
    [
        ("pip install 'penstock[sysv]'", True),
        ("`pip install -U penstock`", True),
        ("with `penstock[local]`", True),
        ("pip install '.[local]'", False),
        ("pip install './penstock-0.1.0-py3-none-any.whl[local]'", False),
        ("pip install /src/penstock", False),
    ],
)
def test_an_index_is_noticed_and_a_path_is_none(line: str, is_index: bool) -> None:
    assert bool(FROM_INDEX.search(line)) is is_index


def test_extras_that_are_named_are_there() -> None:
    named = {extra for name in [*pages(), *SOURCES] for extra in NAMED.findall(text(name))}
    assert {"tracing", "sysv", "console", "local"} <= named <= set(extras())


def test_the_page_has_all_of_them() -> None:
    """Check that the page lists all extras except those for development."""
    rows = re.findall(r"^\| `(\w+)` \|", text("docs/start.md"), re.M)
    assert set(rows) == set(extras()) - {"dev", "docs"}
