"""Check that a test runs every command of the pages, or that tests/docs/inventory.py gives a reason."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks, pages, without_fence
from tests.docs.inventory import ROWS, Row, Taken, Untested
from tests.tmq.process import ROOT

TESTS = ROOT / "tests"
FOLLOWERS = {"docs/test_tutorials.py"}  # find the pages that they follow by themselves


def is_of(row: Row, block: Block) -> bool:
    return (
        row.page == block.page and row.section in ("", block.section) and block.first.startswith(row.begins)
    )


@cache
def commands() -> list[Block]:
    return [block for page in pages() for block in blocks(page) if block.is_command]


def test_number_of_blocks_is_known() -> None:
    """Check that the commands of the pages are found: an empty list would pass the other tests."""
    number = (ROOT / "docs/cli.md").read_text().count("\n$ ")
    assert sum(block.text.count("$ ") for block in commands() if block.page == "docs/cli.md") >= number > 60
    assert len({block.page for block in commands()}) > 20


@pytest.mark.parametrize("page", pages())
def test_each_block_has_one_row(page: str) -> None:
    for block in commands():
        if block.page == page:
            assert len([row for row in ROWS if is_of(row, block)]) == 1, block


@pytest.mark.parametrize("page", pages())
def test_no_block_is_without_a_fence(page: str) -> None:
    """Check that pages have no indented blocks, which the list of blocks would miss."""
    assert not list(without_fence(page))


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.page}, {row.section or 'all'}{row.begins and f', {row.begins}'}"
)
def test_each_row_has_a_block_and_its_test_is_there(row: Row) -> None:
    assert any(is_of(row, block) for block in commands())
    if isinstance(row.by, Untested):
        return
    for by in (row.by, *row.but):
        file, _, name = by.test.partition("::")
        assert name in functions(file), by.test
    file, _, _ = row.by.test.partition("::")
    if isinstance(row.by, Taken) and file not in FOLLOWERS:
        assert _names(file, row.page), f"{file} does not take anything from {row.page}"


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def _names(file: str, page: str) -> bool:
    """Return whether a test file names the page, as one text or as parts of a path."""
    text = (TESTS / file).read_text()
    return page in text or '" / "'.join(Path(page).parts) in text


def test_unlisted_command_and_outdated_row_are_noticed() -> None:
    block = Block("docs/cli.md", "up and away", 1, "", "$ penstock up\n")
    assert block.is_command
    assert not any(is_of(row, block) for row in ROWS)
    gone = Row("docs/cli.md", "up", Untested("it no longer exists"), "penstock rise")
    assert not any(is_of(gone, each) for each in commands())
