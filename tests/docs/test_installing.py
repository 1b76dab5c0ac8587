"""Penstock is in no package index, where somebody else's package has its name: nothing says that it is."""

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


def test_nothing_says_that_it_comes_from_an_index() -> None:
    assert {
        name: found[0] for name in [*pages(), *SOURCES] if (found := FROM_INDEX.findall(text(name)))
    } == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install penstock",
        "pip install 'penstock[sysv]'",
        "`pip install -U penstock`",
        "with `penstock[local]`",
    ],
)
def test_it_would_be_noticed(line: str) -> None:
    assert FROM_INDEX.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[local]'",
        "pip install './penstock-0.1.0-py3-none-any.whl[local]'",
        "pip install /src/penstock",
    ],
)
def test_a_path_is_none(line: str) -> None:
    assert not FROM_INDEX.search(line)


def test_extras_that_are_named_are_there() -> None:
    named = {extra for name in [*pages(), *SOURCES] for extra in NAMED.findall(text(name))}
    assert {"tracing", "sysv", "console", "local"} <= named <= set(extras())


def test_the_page_has_all_of_them() -> None:
    """But what only developers install."""
    rows = re.findall(r"^\| `(\w+)` \|", text("docs/start.md"), re.M)
    assert set(rows) == set(extras()) - {"dev", "docs"}
