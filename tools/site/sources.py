"""Make pages that show source files and folders which documentation links to."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.site.places import DOCS, ROOT, place, way

LANGUAGES = {".py": "python", ".yaml": "yaml", ".c": "c", ".json": "json"}
NOTEBOOK = ".ipynb"
HEAD = "---\nsearch: {exclude: true}\n---\n"  # keep sources out of the search


def source_page(path: str) -> str:
    """Return Markdown that shows the file or folder."""
    if path.endswith(NOTEBOOK):
        return HEAD + "\n".join(_notebook(json.loads((ROOT / path).read_text())))
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


def _notebook(notebook: dict[str, Any]) -> Iterator[str]:
    """Yield the cells of a notebook with their outputs."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"]) + "\n"
            continue
        yield _fenced("python", "".join(cell["source"]))
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                yield f"![](data:image/png;base64,{''.join(data['image/png'].split())})\n"
            elif text := output.get("text") or data.get("text/plain"):
                yield _fenced("text", "".join(text))


def _shown(path: Path) -> str:
    return _fenced(LANGUAGES.get(path.suffix, "text"), path.read_text())


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````\n"
