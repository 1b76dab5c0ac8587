"""Check that files and folders named in docs/architecture.md and docs/where.md exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_pages import FENCE, ROOT

NAMED = re.compile(r"`([\w<>./-]+(?:/|\.(?:js|lua|md|py|yaml)))`")
PLACE = re.compile(r"\*\*`([\w/]+)`\*\*")
ALWAYS = {"__init__.py", "__main__.py"}
COMPLETE = [
    "services/store",
    "services/kit",
    "services/console",
    "services/cli",
    "operator/penstock_operator",
]


def layers() -> dict[str, set[str]]:
    """Return the names in each part of "Layers and packages", by the folder that it describes."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("\n## Layers and packages\n")[2].partition("\n## ")[0]
    _, *parts = PLACE.split(section)
    return {place: set(NAMED.findall(words)) for place, words in zip(parts[::2], parts[1::2], strict=True)}


def missing(words: str) -> list[str]:
    """Return the names of a table row that are in neither the repository nor a folder that the row names before."""
    folders, found = [ROOT], []
    for name in NAMED.findall(words):
        pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
        paths = [path for folder in folders for path in folder.glob(pattern)]
        if not paths:
            found.append(name)
        folders += [path if path.is_dir() else path.parent for path in paths]
    return found


def test_rooms_exist() -> None:
    named = layers()
    assert set(COMPLETE) < set(named)
    gone = {
        place: [name for name in names if not ((ROOT / place / name).exists() or (ROOT / name).exists())]
        for place, names in named.items()
    }
    assert {place: names for place, names in gone.items() if names} == {}


@pytest.mark.parametrize("place", COMPLETE)
def test_every_room_is_named(place: str) -> None:
    folder = ROOT / place
    modules = {path.name for path in folder.glob("*.py")} - ALWAYS
    packages = {f"{path.parent.name}/" for path in folder.glob("*/*") if has_text(path)}
    assert (modules | packages) - layers()[place] == set()


def has_text(path: Path) -> bool:
    return path.suffix in {".html", ".lua", ".py"}


def test_files_to_change_exist() -> None:
    text = FENCE.sub("", (ROOT / "docs" / "where.md").read_text())
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {row.split("|")[1].strip(): gone for row in rows if (gone := missing(row))} == {}


@pytest.mark.parametrize(
    ("row", "gone"),
    [
        ("`services/store/pipeline/domain.py`, `pipe.py` beside it, `services/<edge>/settings.py`", []),
        ("`pipe.py`, `services/store/pipeline/domain.py`", ["pipe.py"]),
        (
            "`services/store/pipeline/domain.py`, `nowhere.py`, `services/nowhere/`",
            ["nowhere.py", "services/nowhere/"],
        ),
    ],
)
def test_missing_files_are_noticed(row: str, gone: list[str]) -> None:
    assert missing(row) == gone
