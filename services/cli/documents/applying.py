"""Applying a file of documents, and saying what became of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from services.cli.documents import declaring
from services.cli.documents.documents import read_documents
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.output import Output
from services.store import Store


def file_option(default: Path) -> Callable[[Any], Any]:
    return click.option(
        "-f",
        "--file",
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help="- for stdin",
    )


async def apply_file(store: Store, output: Output, file: Path, dry_run: bool) -> None:
    wanted = read_documents(file)
    if not wanted:
        raise Failure(
            Exit.USAGE,
            "no_documents",
            f"{file}: there is no Queue or Peer document in it: nothing was applied",
        )
    with output.progress("documents", len(wanted)) as advance:
        changes = await (
            declaring.plan(store, wanted) if dry_run else declaring.apply(store, wanted, advance=advance)
        )
    for one, change in zip(wanted, changes, strict=True):
        what = one.name if one.kind == "Queue" else f"peer {one.name}"
        output.line(f"{change}{' (dry run)' if dry_run else ''}: {what}")
        if output.as_json:
            output.record({"change": change.value, "kind": one.kind, "name": one.name, "dry_run": dry_run})
