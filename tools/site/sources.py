"""Make pages that show source files and folders which documentation links to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.site.places import DOCS, ROOT, place, way

LANGUAGES = {".py": "python", ".yaml": "yaml", ".c": "c", ".json": "json"}
HEAD = "---\nsearch: {exclude: true}\n---\n"  # keep sources out of the search


def source_page(path: str) -> str:
    """Return Markdown that shows the file or folder."""
    if (ROOT / path).is_file():
        return f"{HEAD}# {path}\n\n{_shown(ROOT / path)}"
    if path.startswith(DOCS):
        return f"{HEAD}# {path}\n\n" + "\n".join(_in_full(path))
    return f"{HEAD}# {path}\n\nIn the source:\n\n" + "\n".join(_listed(path))


def _files(folder: str) -> list[Path]:
    found = sorted(path for path in (ROOT / folder).iterdir() if path.is_file())
    return [path for path in found if path.suffix not in (".lock", ".pyc")]


def _in_full(folder: str) -> Iterator[str]:
    """Yield links to the folder's pages, then the contents of its other files."""
    here = place(folder)
    for path in _files(folder):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".md":
            yield f"- [{path.stem}]({way(here, place(name))})"
        else:
            yield f"## {path.name}\n\n{_shown(path)}"


def _listed(folder: str) -> Iterator[str]:
    for path in _files(folder):
        said = _first_line(path) if path.suffix == ".py" else ""
        yield f"- `{path.name}`{': ' if said else ''}{said}"


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def _shown(path: Path) -> str:
    return f"````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text().rstrip()}\n````\n"
