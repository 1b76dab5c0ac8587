"""What a run of several parts found, as it is kept: after each, and under its plain name when a full run is over."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import write_between_markers

UNFINISHED = "-unfinished"


def result_name(name: str, smaller: Sequence[str], only: Sequence[str]) -> str:
    """Plain for a full run, so that no part of one replaces it, and no smaller one."""
    return "-".join([name, *smaller, *sorted(only)])


class Kept:
    """One run's file."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.json"
        self._unfinished = folder / f"{name}{UNFINISHED}.json"
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, found: dict[str, Any]) -> None:
        """What there is so far, beside the file of the run before."""
        self._unfinished.write_text(json.dumps(found, indent=1, default=str) + "\n", "utf-8")

    def finish(self) -> Path:
        return self._unfinished.replace(self.path)


def write_docs(page: Path, path: Path, name: str, markdown: Callable[[dict[str, Any]], str]) -> str:
    """Writes what the file has between the page's markers of this name. Raises ValueError with what is missing."""
    if not path.exists():
        raise ValueError(f"{path} is not there yet: python -m benchmarks.{name}")
    text = markdown(json.loads(path.read_text("utf-8")))
    write_between_markers(page, text, f"<!-- {name}:begin -->", f"<!-- {name}:end -->")
    return f"{page.name} shows {path.name}"
