"""Rules that somebody spoilt: without one of their reasons or arms, with another threshold, another way to sum up."""

from __future__ import annotations

import re
from collections.abc import Iterator

CHOICE = re.compile(r'=~"([\w|]+)"')
THRESHOLD = re.compile(r"(?<=[<>] )\d+(?:\.\d+)?(?![\d.])")
NONE = re.compile(r"> 0(?![.\d])")


def mutants(expr: str, *, shows_value: bool) -> Iterator[str]:
    """shows_value: people read the number, so it matters which it is."""
    expr = " ".join(expr.split())
    yield from _choices(expr)
    yield from _arms(expr)
    yield from _thresholds(expr)
    if shows_value:
        yield from _sums(expr)


def _choices(expr: str) -> Iterator[str]:
    for found in CHOICE.finditer(expr):
        words = found[1].split("|")
        for word in words if len(words) > 1 else ():
            left = "|".join(each for each in words if each != word)
            yield expr[: found.start(1)] + left + expr[found.end(1) :]


def _arms(expr: str) -> Iterator[str]:
    """Without what stands on either side of each `or`."""
    for found in re.finditer(" or ", expr):
        yield expr[: _edge(expr, found.start(), -1)] + expr[found.end() :]
        yield expr[: found.start()] + expr[_edge(expr, found.end(), 1) :]


def _edge(expr: str, at: int, step: int) -> int:
    """Where an arm that begins or ends here does so on its other side: at a bracket around it, or at the next `or`."""
    depth, around = 0, "()"[::step]
    while 0 <= (looked := at if step > 0 else at - 1) < len(expr):
        depth += {around[0]: 1, around[1]: -1}.get(expr[looked], 0)
        ahead = expr[at : at + 4] if step > 0 else expr[at - 4 : at]
        if depth < 0 or (not depth and ahead == " or "):
            return at
        at += step
    return at


def _thresholds(expr: str) -> Iterator[str]:
    for found in THRESHOLD.finditer(expr):
        number = float(found[0])
        others = (number + 1, number - 1) if number in (1, 2) else (number * 1.2, number / 1.2)
        for other in others if number else ():
            yield f"{expr[: found.start()]}{other:g}{expr[found.end() :]}"
    for found in NONE.finditer(expr):
        yield f"{expr[: found.start()]}>= 0{expr[found.end() :]}"
    if "== 0" in expr:
        yield expr.replace("== 0", "== 1")


def _sums(expr: str) -> Iterator[str]:
    shown = expr.partition(" unless ")[0]  # of what stands behind it only matters whether it is there
    for one, other in (("sum by", "max by"), ("max by", "sum by")):
        for found in re.finditer(one, shown):
            yield expr[: found.start()] + other + expr[found.end() :]
