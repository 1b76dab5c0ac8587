"""Regular expressions that Python 3.11 gets wrong are not used: possessive repeats of groups (CPython, gh-106052)."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import protos
import services

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


def parse(expression: str | bytes) -> Any:
    return _parser.parse(expression)


def test_such_a_repeat_is_seen() -> None:
    for bad in ("(?:ab)++", "x(?:a|(?:bc)*+)", rb"(a b+){1,9}+"):
        assert list(possessive_groups(parse(bad))), bad
    for good in ("[ab]++", "a*+b{1,5}+", "(?:ab)+"):
        assert not list(possessive_groups(parse(good))), good


def test_no_expression_of_ours_has_one() -> None:
    for package in (protos, services):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found = [each for each in gc.get_objects() if isinstance(each, re.Pattern)]
    assert found
    wrong = [
        each.pattern for each in found if list(possessive_groups(_parser.parse(each.pattern, each.flags)))
    ]
    assert wrong == []
