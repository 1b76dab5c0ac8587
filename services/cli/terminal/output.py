"""What a command shows: tables for people, JSON for programs, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import yaml
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from services.cli.terminal.text import printable

WIDE = 10_000  # columns, where no terminal cuts a table


class Advance(Protocol):
    """Tells that so many more are done."""

    def __call__(self, number: int, /) -> None: ...


class Output:
    """Results go to standard output, everything about them to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
        self._notes = Console(stderr=True, highlight=False)

    @staticmethod
    def encode(value: dict[str, Any]) -> bytes:
        """One JSON object on a line of its own. Names that are not UTF-8 keep their octets as lone surrogates."""
        return json.dumps(value, separators=(",", ":"), default=_octets).encode() + b"\n"

    def record(self, value: dict[str, Any]) -> None:
        """A result for programs."""
        sys.stdout.write(self.encode(value).decode())

    def line(self, text: str) -> None:
        """A line of a result for people."""
        if not self.as_json:
            self._console.print(Text(printable(text)), soft_wrap=True)

    def document(self, document: dict[str, Any]) -> None:
        """A document for people, as YAML that reads back as it was: what cannot be shown has YAML's escapes."""
        lines = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).split("\n")
        if not all(map(_can_be_shown, lines)):
            lines = yaml.safe_dump(document, sort_keys=False).split("\n")
        for line in lines[:-1]:
            self.line(line)

    def note(self, text: str) -> None:
        """Something beside the result, for people."""
        if not self.as_json:
            self._notes.print(Text(printable(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A column whose name ends with # holds numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            name = column.removesuffix("#")
            table.add_column(name, justify="left" if name == column else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self._print_table(table)

    def pairs(self, pairs: Iterable[tuple[str, str]], prefix: str = "") -> None:
        """Print names and values, one pair a line. With the prefix '# ' they are comments of a document above."""
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, value in pairs:
            table.add_row(Text(name), Text(printable(value)))
        self._print_table(table, prefix)

    def _print_table(self, table: Table, prefix: str = "") -> None:
        with self._console.capture() as captured:
            self._console.print(table)
        lines = captured.get().splitlines()
        sys.stdout.write("".join((prefix + line).rstrip() + "\n" for line in lines))

    def ask(self, question: str, answer: str) -> bool:
        """Whether a person at a terminal types `answer`; nobody there means no."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        self._notes.print(Text(f"{printable(question)} "), end="", soft_wrap=True)
        return input() == answer

    @contextmanager
    def progress(self, what: str, total: int | None, *, alone: bool = True) -> Iterator[Advance]:
        """A bar on standard error while there is a terminal; total=None: how much there is, nobody knows.

        alone=False: results are written meanwhile, and must not share the terminal with it.
        """
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        shown = sys.stderr.isatty() and (alone or not sys.stdout.isatty())
        with Progress(*columns, console=self._notes, transient=True, disable=not shown) as bar:
            task = bar.add_task(what, total=total)
            yield lambda number: bar.advance(task, number)


def _can_be_shown(line: str) -> bool:
    """Whether standard output has the line as it is."""
    try:
        line.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return printable(line) == line


def _octets(value: object) -> str:
    """Attributes may hold octets."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise TypeError(f"{type(value).__name__} has no place in JSON")
