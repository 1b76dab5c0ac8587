"""Which file of the repository is which page of the site, and where a link between two files leads there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
SOURCES = "sources/"
# Pages that are not below docs/: each has on the site the path that it has in the repository.
ELSEWHERE = ("protos/*.md", "charts/*/README.md", "tests/*/README.md", "CHANGELOG.md", "CONTRIBUTING.md")
README = "readme.md"  # on the site, where README.md would be the first page of all
PICTURES = (".png", ".svg")


def pages_elsewhere() -> Iterator[str]:
    for pattern in ELSEWHERE:
        yield from sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))


def place(path: str) -> str:
    """Of a file or folder of the repository, on the site."""
    if path == "README.md":
        return README
    if path.startswith(DOCS) and _is_copied(path):
        return path.removeprefix(DOCS)
    if path.endswith(PICTURES) or path in set(pages_elsewhere()):
        return path
    return f"{SOURCES}{path}.md"


def origin(uri: str) -> str:
    """The other way round: the file that a page is made of."""
    if uri == README:
        return "README.md"
    return uri if uri in set(pages_elsewhere()) else DOCS + uri


def _is_copied(path: str) -> bool:
    """Below docs/ all but examples, which are shown with what is in them, and folders."""
    return (ROOT / path).is_file() and not path.startswith(f"{DOCS}examples/")


def target(link: str, page: str) -> str | None:
    """The file or folder that a page's link leads to, as a path in the repository; None: there is none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return path if (ROOT / path).exists() and not path.startswith("..") else None


def way(page: str, to: str) -> str:
    """From a page of the site to another, relative."""
    return posixpath.relpath(to, str(PurePosixPath(page).parent))
