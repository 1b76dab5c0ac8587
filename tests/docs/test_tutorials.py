"""Run every command of the tutorials as a reader does, and compare its output with the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.terminals import BLOCK, Reader, blocks
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

TUTORIALS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = ["docs/start.md", *TUTORIALS]
COMMAND = re.compile(r"^\$ ", re.M)
YAML = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.M | re.S)
FOLDER = re.compile(r"^\$ cd (docs/examples/\S+)$", re.M)


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Yield a reader on a network with the pages' ports free, in a folder with a path short enough for the socket."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        reader = Reader(Path(folder))
        yield reader
        reader.clear()


@pytest.mark.parametrize("page", PAGES)
def test_the_page(reader: Reader, page: str) -> None:
    for block in blocks(page):
        reader.follow(block)


@pytest.mark.parametrize("page", PAGES)
def test_no_command_stands_elsewhere(page: str) -> None:
    """Check that every command is in a block that the tests run."""
    assert not COMMAND.findall(BLOCK.sub("", (ROOT / page).read_text()))


@pytest.mark.parametrize("page", [page for page in PAGES if YAML.search((ROOT / page).read_text())])
def test_page_shows_the_example_files(page: str) -> None:
    text = (ROOT / page).read_text()
    (folder,) = FOLDER.findall(text)
    for name, shown in YAML.findall(text):
        assert shown in (ROOT / folder / name).read_text(), name
