"""Write the table in docs/metrics.md from the code: python -m tools.metrics_docs docs/metrics.md

Metrics are the constants of all modules named `measures` or `..._measures`.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from services.kit.measure import Kind, Measure

PACKAGES = ("services", "penstock_operator")
OF_EDGES = "services"  # modules here have metrics with the label `edge`
WITHOUT_EDGE = tuple(
    f"services.kit.metrics.{name}_measures" for name in ("build", "gc", "runtime", "state", "report")
)

MARK = "<!-- what follows is written by `make metrics-docs` -->\n"


@dataclass(frozen=True, slots=True)
class Row:
    measure: Measure
    who: str
    labels: tuple[str, ...]


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            last = found.name.rpartition(".")[2]
            if last == "measures" or last.endswith("_measures"):
                yield importlib.import_module(found.name)


def rows() -> list[Row]:
    """Return a row for each metric, by name."""
    found = [
        Row(one, module.WHO, (*_edge(module.__name__), *one.label_names))
        for module in modules()
        for one in vars(module).values()
        if isinstance(one, Measure)
    ]
    return sorted(found, key=lambda row: row.measure.name)


def _edge(module: str) -> tuple[str, ...]:
    return ("edge",) if module.startswith(OF_EDGES) and module not in WITHOUT_EDGE else ()


def table() -> str:
    lines = ["| metric | type | unit | labels | series | of | meaning |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(_cell, _cells(row)))} |" for row in rows()]
    return "\n".join(lines) + "\n"


def page(file: Path) -> str:
    """Return the page with the table below its mark."""
    written, _, _ = file.read_text("utf-8").partition(MARK)
    return f"{written}{MARK}\n{table()}"


def _cells(row: Row) -> tuple[str, ...]:
    one = row.measure
    labels = ", ".join(row.labels) or "-"
    kind = Kind(one.kind).value
    meaning = one.text.rstrip(".") + (f"; {one.more}" if one.more else "")
    return f"`{one.name}`", kind, one.unit_name or "-", labels, one.series_count, row.who, meaning


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    at = Path(sys.argv[1])
    at.write_text(page(at), "utf-8")
