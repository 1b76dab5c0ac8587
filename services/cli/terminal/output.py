"""Write the output of commands: tables or JSON, and progress on a terminal."""

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

from services.cli.terminal.exits import usage
from services.cli.terminal.text import printable

WIDE = 10_000  # columns, if the output is not a terminal


class Advance(Protocol):
    """A callback for progress: `number` more are done."""

    def __call__(self, number: int, /) -> None:
        """Count `number` more."""


class Output:
    """Writes results to standard output, and notes and progress to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
        self._notes = Console(stderr=True, highlight=False)

    @staticmethod
    def encode(value: dict[str, Any]) -> bytes:
        """Return the object as a line of JSON; bytes that are not UTF-8 become lone surrogates."""
        return json.dumps(value, separators=(",", ":"), default=_octets).encode() + b"\n"

    def record(self, value: dict[str, Any]) -> None:
        """Write a result as a line of JSON."""
        sys.stdout.write(self.encode(value).decode())

    def line(self, text: str) -> None:
        """Write a line of a result, unless the output is JSON."""
        if not self.as_json:
            self._console.print(Text(printable(text)), soft_wrap=True)

    def document(self, document: dict[str, Any]) -> None:
        """Write a document as YAML that reads back unchanged: unprintable characters become YAML escapes."""
        lines = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).split("\n")
        if not all(map(_can_be_shown, lines)):
            lines = yaml.safe_dump(document, sort_keys=False).split("\n")
        for line in lines[:-1]:
            self.line(line)

    def note(self, text: str) -> None:
        """Write a note to standard error, unless the output is JSON."""
        if not self.as_json:
            self._notes.print(Text(printable(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table. Columns whose names end with # are right-aligned."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            name = column.removesuffix("#")
            table.add_column(name, justify="left" if name == column else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self._print_table(table)

    def pairs(self, pairs: Iterable[tuple[str, str]], prefix: str = "") -> None:
        """Write names and values, one pair per line. The prefix '# ' makes them comments below a YAML document."""
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
        """Ask the question and return whether the user types `answer`. Without a terminal, return False."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        self._notes.print(Text(f"{printable(question)} "), end="", soft_wrap=True)
        return input() == answer

    def confirm_deletion(self, what: str, name: str) -> None:
        """Return once the user has typed `name`. Raises Failure otherwise."""
        if not self.ask(f"This permanently deletes {what}. Type the queue's name to confirm:", name):
            raise usage(f"this permanently deletes {what}: use --yes, or type the queue's name at a terminal")

    @contextmanager
    def progress(self, what: str, total: int | None, *, alone: bool = True) -> Iterator[Advance]:
        """Show a progress bar on standard error if that is a terminal. total=None: the total is unknown.

        alone=False: results are written meanwhile and must not share the terminal with the bar.
        """
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        shown = sys.stderr.isatty() and (alone or not sys.stdout.isatty())
        with Progress(*columns, console=self._notes, transient=True, disable=not shown) as bar:
            task = bar.add_task(what, total=total)
            yield lambda number: bar.advance(task, number)


def _can_be_shown(line: str) -> bool:
    """Return whether standard output can show the line unchanged."""
    try:
        line.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return printable(line) == line


def _octets(value: object) -> str:
    """Encode bytes in attributes for JSON."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")
