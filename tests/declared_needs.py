"""Read the needs that each module of the services declares from its source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANY = "**"  # needs whose names are created at run time


@cache
def declared_needs() -> dict[str, set[str]]:
    """Return the names of all needs, by the module that creates a `Readiness` with them."""
    found: dict[str, set[str]] = {}
    for path in sorted([*ROOT.glob("services/**/*.py"), *ROOT.glob("operator/**/*.py")]):
        names = {
            keyword.arg or MANY
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Readiness"
            for keyword in node.keywords
        }
        if names:
            found[str(path.relative_to(ROOT))] = names
    return found
