"""Apply a file of documents and report the change for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from services.cli.documents import declaring
from services.cli.documents.documents import Declaration, read_documents
from services.cli.documents.resource_owner import OVERRIDDEN, warn_of_resource
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.output import Output
from services.store import Store


def file_option(default: Path) -> Callable[[Any], Any]:
    """Return the option -f/--file with this default."""
    return click.option(
        "-f",
        "--file",
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help="- for stdin",
    )


async def apply_file(store: Store, output: Output, file: Path, dry_run: bool) -> None:
    """Apply every document of the file. Raises Failure before the first change if one cannot be applied."""
    declarations = read_documents(file)
    if not declarations:
        text = f"{file}: it has no Queue or Peer document; nothing was applied"
        raise Failure(Exit.USAGE, "no_documents", text)

    def warn(one: Declaration, owner: str) -> None:
        warn_of_resource(output, one.kind.lower(), one.name, owner, OVERRIDDEN)

    with output.progress("documents", len(declarations)) as advance:
        changes = await (
            declaring.plan(store, declarations, overridden=warn)
            if dry_run
            else declaring.apply(store, declarations, advance=advance, overridden=warn)
        )
    for one, change in zip(declarations, changes, strict=True):
        what = one.name if one.kind == "Queue" else f"peer {one.name}"
        output.line(f"{change}{' (dry run)' if dry_run else ''}: {what}")
        if output.as_json:
            output.record({"change": change.value, "kind": one.kind, "name": one.name, "dry_run": dry_run})
