"""Save the results of a run of several parts: after each part, and under the plain name after a full run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import write_between_markers

UNFINISHED = "-unfinished"


def result_name(name: str, smaller: Sequence[str], only: Sequence[str]) -> str:
    """Return the name of the result. A full run has the plain name, so partial or smaller runs never replace it."""
    return "-".join([name, *smaller, *sorted(only)])


class Kept:
    """The result file of one run."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.json"
        self._unfinished = folder / f"{name}{UNFINISHED}.json"
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, found: dict[str, Any]) -> None:
        """Save the results so far, beside the previous run's file."""
        self._unfinished.write_text(json.dumps(found, indent=1, default=str) + "\n", "utf-8")

    def finish(self) -> Path:
        return self._unfinished.replace(self.path)


def write_docs(page: Path, path: Path, name: str, markdown: Callable[[dict[str, Any]], str]) -> str:
    """Write the file's results between the page's markers of this name. Raises ValueError if anything is missing."""
    if not path.exists():
        raise ValueError(f"{path} is not there yet: python -m benchmarks.{name}")
    text = markdown(json.loads(path.read_text("utf-8")))
    write_between_markers(page, text, f"<!-- {name}:begin -->", f"<!-- {name}:end -->")
    return f"{page.name} shows {path.name}"
