"""Map files of the repository to pages of the site, and links between files to links between pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
SOURCES = "sources/"
# Pages outside docs/: their paths on the site are those in the repository.
ELSEWHERE = ("protos/*.md", "charts/*/README.md", "tests/*/README.md", "CHANGELOG.md", "CONTRIBUTING.md")
README = "readme.md"  # on the site, where README.md would be the home page
PICTURES = (".png", ".svg")


def pages_elsewhere() -> Iterator[str]:
    for pattern in ELSEWHERE:
        yield from sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))


def place(path: str) -> str:
    """Return the page of a file or folder of the repository."""
    if path == "README.md":
        return README
    if path.startswith(DOCS) and _is_copied(path):
        return path.removeprefix(DOCS)
    if path.endswith(PICTURES) or path in set(pages_elsewhere()):
        return path
    return f"{SOURCES}{path}.md"


def origin(uri: str) -> str:
    """Return the file that a page is made from."""
    if uri == README:
        return "README.md"
    return uri if uri in set(pages_elsewhere()) else DOCS + uri


def _is_copied(path: str) -> bool:
    """Return whether mkdocs copies the file: all below docs/ except folders and the examples, which get pages."""
    return (ROOT / path).is_file() and not path.startswith(f"{DOCS}examples/")


def target(link: str, page: str) -> str | None:
    """Return the path in the repository that a page's link leads to, or None."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return path if (ROOT / path).exists() and not path.startswith("..") else None


def way(page: str, to: str) -> str:
    """Return the relative link from one page of the site to another."""
    return posixpath.relpath(to, str(PurePosixPath(page).parent))
