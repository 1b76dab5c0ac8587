"""Show the results of a run of several parts as tables: on the terminal, and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.report import COLOURS, FINDINGS_HEADER, FINDINGS_TITLE, finding_row, markdown_table
from benchmarks.results import Finding

Found = dict[str, Any]  # as saved: parts by name; `failed` has the reasons for missing ones
Row = list[str]


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    header: tuple[str, ...]
    rows: Callable[[Any], Iterator[Row]]
    words: Callable[[Any], str] = lambda found: ""  # text below the tables


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a benchmark. parts: by their names in the results; caption: description of the run."""

    parts: Mapping[str, Part]
    findings: Callable[[Found], Sequence[Finding]]
    caption: Callable[[Found], str]

    def show(self, found: Found, console: Console) -> None:
        for name, part in self._there(found):
            table = Table(*part.header, title=part.title)
            for row in part.rows(found[name]):
                table.add_row(*row)
            console.print(table, part.words(found[name]))
        table = Table(*FINDINGS_HEADER, title=FINDINGS_TITLE)
        for each in self.findings(found):
            table.add_row(*finding_row(each), style=COLOURS.get(each.verdict))
        console.print(table, *_failures(found), self.caption(found))

    def markdown(self, found: Found) -> str:
        parts = [
            text
            for name, part in self._there(found)
            for text in (
                f"{part.title}:",
                markdown_table(part.header, part.rows(found[name])),
                part.words(found[name]),
            )
        ]
        wanted = markdown_table(FINDINGS_HEADER, map(finding_row, self.findings(found)))
        return "\n\n".join(filter(None, (*parts, wanted, *_failures(found), self.caption(found))))

    def _there(self, found: Found) -> list[tuple[str, Part]]:
        return [(name, part) for name, part in self.parts.items() if name in found]


def _failures(found: Found) -> list[str]:
    return [f"{name}: not run: {why}" for name, why in found["failed"].items()]
