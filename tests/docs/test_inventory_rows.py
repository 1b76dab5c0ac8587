"""Check the rows of tests/docs/inventory.py with `Taken`: every command of a followed section is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs import bench
from tests.docs.blocks import Block, blocks, chains_of
from tests.docs.inventory import ROWS, Row, Taken, headings
from tests.docs.test_inventory import FOLLOWERS, TESTS

TAKEN = [row for row in ROWS if isinstance(row.by, Taken)]
BENCH = re.compile(r"^from tests\.docs\.(bench|session) import ", re.M)


def _name(row: Row) -> str:
    return f"{row.page}, {row.section or 'all'}{row.begins and f', {row.begins}'}"


def file_of(row: Row) -> str:
    assert isinstance(row.by, Taken)
    return row.by.test.partition("::")[0]


def commands_in(block: Block) -> Iterator[str]:
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield line.removeprefix("$ ")


@pytest.mark.parametrize(
    "page", sorted({row.page for row in TAKEN if BENCH.search((TESTS / file_of(row)).read_text())})
)
def test_all_commands_of_a_followed_page_are_found(page: str) -> None:
    """Check that following a page finds all its commands: a block with another fence would be skipped."""
    followed: list[str] = []
    for chain in chains_of(page):
        if len(chain) == 2:
            followed += [command.line.partition("\n")[0] for command in bench.commands(page, chain[-1])]
    there = [
        line
        for block in blocks(page)
        if block.is_command and block.language == ""
        for line in commands_in(block)
    ]
    assert followed == there
    assert there


@pytest.mark.parametrize(
    "row",
    [row for row in TAKEN if row.section and BENCH.search((TESTS / file_of(row)).read_text())],
    ids=_name,
)
def test_followed_blocks_mark_their_commands(row: Row) -> None:
    """Check that each followed block marks its commands with `$ `, and its output without."""
    if file_of(row) in FOLLOWERS:
        return
    own = [
        block
        for block in blocks(row.page)
        if block.section == row.section and block.first.startswith(row.begins)
    ]
    for block in own:
        assert not block.is_command or block.text.startswith("$ "), block


def test_a_section_in_another_one_is_followed_with_it() -> None:
    found = headings("docs/test_cli_page.py::test_queues_and_messages", "docs/cli.md")
    assert {"## put", "## peer", "## dead"} <= set(found)
    assert "### export, import" not in found
