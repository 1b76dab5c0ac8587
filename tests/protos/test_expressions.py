"""Regular expressions that Python 3.11 gets wrong are not used: possessive repeats of groups (CPython, gh-106052)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

SINGLE = (_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY)


def possessive_groups(parsed: Any) -> Iterator[Any]:
    """Repeats `(...)++` and the like, wherever they stand in a parsed expression."""
    for operation, value in parsed:
        if operation is _constants.POSSESSIVE_REPEAT:
            repeated = value[2]
            if len(repeated) != 1 or repeated[0][0] not in SINGLE:
                yield value
        for part in value if isinstance(value, tuple) else ():
            if isinstance(part, _parser.SubPattern):
                yield from possessive_groups(part)
            elif isinstance(part, list) and part and isinstance(part[0], _parser.SubPattern):
                for branch in part:
                    yield from possessive_groups(branch)


def parse(expression: str | bytes, flags: int = 0) -> Any:
    return _parser.parse(expression, flags)


def test_such_a_repeat_is_seen() -> None:
    for bad in ("(?:ab)++", "x(?:a|(?:bc)*+)", rb"(a b+){1,9}+"):
        assert list(possessive_groups(parse(bad))), bad
    for good in ("[ab]++", "a*+b{1,5}+", "(?:ab)+"):
        assert not list(possessive_groups(parse(good))), good


OURS = """
import importlib, pkgutil, re, sys
compiled, found = re.compile, []
def noting(pattern, flags=0):
    made = compiled(pattern, flags)
    if sys._getframe(1).f_globals["__name__"].startswith(("protos", "services")):
        found.append((made.pattern, made.flags))
    return made
re.compile = noting
import protos, services
for package in (protos, services):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(found)
"""


def test_no_expression_of_ours_has_one() -> None:
    """Other packages' are theirs to see to. In a process of its own, in which nothing has been imported yet."""
    shown = subprocess.run([sys.executable, "-c", OURS], capture_output=True, text=True, check=True).stdout
    found = ast.literal_eval(shown)
    assert len(found) > 20
    assert [each for each in found if list(possessive_groups(parse(*each)))] == []
