"""How a command says that it failed, and how `up` reads that of its children."""

from __future__ import annotations

import json
import os
import sys

from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.text import printable


def finish_output() -> None:
    """Write what is buffered, and drop what cannot be written: Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(failure: Failure, *, as_json: bool) -> None:
    """The line of a command that failed; several faults have one each."""
    if as_json:
        text = json.dumps({"error": failure.label, "message": failure.message, "exit": int(failure.exit)})
    else:
        lines = failure.message.split("\n")
        text = "\n".join(printable(f"penstock: {failure.label}: {line}") for line in lines)
    sys.stderr.write(text + "\n")


def overheard(line: bytes) -> Failure | None:
    """What `complain` wrote for a program; None for any other line."""
    try:
        told = json.loads(line)
        return Failure(Exit(told["exit"]), str(told["error"]), str(told["message"]))
    except (ValueError, TypeError, KeyError):
        return None
