"""The rows of tests/docs/inventory.py that say `Taken`: the test takes that section, and all that stands in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs import bench
from tests.docs.blocks import Block, blocks, chains_of
from tests.docs.inventory import ROWS, Row, Taken, headings
from tests.docs.test_inventory import FOLLOWERS, TESTS

TAKEN = [row for row in ROWS if isinstance(row.by, Taken)]
BENCH = re.compile(r"^from tests\.docs\.(bench|session) import ", re.M)
WHOLE = {  # pages that a file takes whole: their blocks are counted when they are unpacked, and one more fails there
    "docs/kubernetes.md": "APPLY, FREE, RELEASE, REDRIVE = BLOCKS",
    "docs/images.md": "blocks(PAGE)",
    "docs/runbooks/index.md": "blocks(INDEX)",
}


def _name(row: Row) -> str:
    return f"{row.page}, {row.section or 'all'}{row.begins and f', {row.begins}'}"


def file_of(row: Row) -> str:
    assert isinstance(row.by, Taken)
    return row.by.test.partition("::")[0]


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((TESTS / file).read_text())


def statements(file: str) -> Iterator[ast.stmt]:
    """Yield those at the top of a test's file, and of modules of tests/docs that it imports as a whole."""
    for each in tree(file).body:
        match each:
            case ast.ImportFrom(module="tests.docs", names=names):
                for one in names:
                    yield from tree(f"docs/{one.name}.py").body
            case _:
                yield each


def words(file: str, name: str) -> set[str]:
    """Return strings and names in a test function, and in what it uses of its file and of modules beside it."""
    known: dict[str, ast.stmt] = {}
    for each in statements(file):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                known[each.name] = each
            case ast.Assign(targets=targets):
                known |= {
                    one.id: each
                    for target in targets
                    for one in ast.walk(target)
                    if isinstance(one, ast.Name)
                }
    found: set[str] = set()
    left = [name]
    while left:
        place = known.pop(left.pop(), None)
        for one in ast.walk(place) if place is not None else ():
            match one:
                case ast.Constant(value=str(text)):
                    found.add(text)
                case ast.Name(id=used) | ast.arg(arg=used) | ast.Attribute(value=ast.Name("page"), attr=used):
                    found.add(f"{used}()")
                    left.append(used)
    return found


def is_named(row: Row) -> bool:
    """By its own heading, one that it is below, or its first words; or by the rows themselves."""
    assert isinstance(row.by, Taken)
    file, _, name = row.by.test.partition("::")
    said = words(file, name)
    if "headings()" in said or WHOLE.get(row.page, "\0") in (TESTS / file).read_text():
        return True
    chain = next((each for each in chains_of(row.page) if each[-1].lstrip("# ") == row.section), [])
    own = {heading.lstrip("# ") for heading in chain[1:] or chain}
    return any(re.search(rf"(^|[#\n ]){re.escape(each)}\n?$", text) for each in own for text in said) or bool(
        row.begins and any(row.begins.split()[0] in text for text in said)
    )


@pytest.mark.parametrize(
    "row", [row for row in TAKEN if row.section and file_of(row) not in FOLLOWERS], ids=_name
)
def test_the_test_names_what_it_takes(row: Row) -> None:
    assert is_named(row), row.by


def commands_in(block: Block) -> Iterator[str]:
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield line.removeprefix("$ ")


@pytest.mark.parametrize(
    "page", sorted({row.page for row in TAKEN if BENCH.search((TESTS / file_of(row)).read_text())})
)
def test_what_follows_a_page_finds_all_its_commands(page: str) -> None:
    """A block that begins with something else is passed over by who follows, and would be run by nobody."""
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
def test_each_block_that_is_followed_says_what_is_typed(row: Row) -> None:
    """`$ ` before each command; what is shown has none."""
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


def test_what_is_left_out_would_be_noticed() -> None:
    """The rows of a test that names its sections itself, and not that of others."""
    (own, *_) = [row for row in TAKEN if row.section == "Three stores in a chain"]
    assert is_named(own)
    other = Row(own.page, "Three stores in a ring", own.by)
    assert not is_named(other)
