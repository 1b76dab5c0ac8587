"""Regular expressions that Python 3.11 matches wrongly are not used: possessive repeats of groups (gh-106052)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")


def expressions(source: str) -> Iterator[str]:
    """Yield possible expressions: every string of a program except its docstrings, and parts of f-strings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose:
            if isinstance(node.value, bytes):
                yield node.value.decode("latin-1")
            elif isinstance(node.value, str):
                yield node.value


def test_possessive_groups_are_found() -> None:
    bad = r"""a = "(?:ab)++"; b = f"x(?:{a}|(?:bc)*+)"; c = rb"(a b+){1,9}+" """
    assert len([each for each in expressions(bad) if POSSESSIVE_GROUP.search(each)]) == 3
    good = r"""a = "[ab]++"; b = r"a*+b{1,5}+\)++"; c = "(?:ab)+" """
    assert not [each for each in expressions(good) if POSSESSIVE_GROUP.search(each)]


def test_no_program_repeats_a_group_possessively() -> None:
    sources = [path for folder in ("protos", "services") for path in (ROOT / folder).rglob("*.py")]
    found = [(path, each) for path in sources for each in expressions(path.read_text())]
    assert len(found) > 1000
    assert [(path, each) for path, each in found if POSSESSIVE_GROUP.search(each)] == []
