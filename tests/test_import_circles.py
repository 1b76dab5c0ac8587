"""Test that there are no import cycles, including imports for types and within functions."""

from __future__ import annotations

import ast
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# folders on the import path
FOLDERS = {"operator": "operator/", "services/redis_stream/plugin": "services/redis_stream/plugin/"}


def module_of(file: str) -> str:
    """Return the dotted name of a file, as it is imported."""
    inner = next((file.removeprefix(path) for path in FOLDERS.values() if file.startswith(path)), file)
    return inner.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(module: str, source: str, modules: frozenset[str], *, is_package: bool) -> set[str]:
    """Return the modules of the tree that a module names in imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in modules else base)
    return found & modules - {module}


def circle_of(files: dict[str, str]) -> list[str]:
    """Return a cycle of modules, each importing the next, with the first repeated at the end; [] without a cycle."""
    modules = frozenset(map(module_of, files))
    graph = {
        module_of(file): imported(module_of(file), source, modules, is_package=file.endswith("/__init__.py"))
        for file, source in files.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    names = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
    files = {name: (ROOT / name).read_text() for name in names if (ROOT / name).exists()}
    assert len(files) > 1000
    assert circle_of(files) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import services.b", "from services.a import x"),
        (
            "from services import b",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from services.a import x",
        ),
        ("from services.b import y", "def f():\n    from . import a"),
    ],
)
def test_circles_are_found_and_named(one: str, other: str) -> None:
    files = {"services/a.py": one, "services/b.py": other, "services/c.py": "import services.a"}
    assert sorted(circle_of(files)[1:]) == ["services.a", "services.b"]
