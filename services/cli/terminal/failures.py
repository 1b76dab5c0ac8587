"""How a command says that it failed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys

import click

from services.cli.terminal.exits import Exit, Failure, failure_of
from services.cli.terminal.text import printable
from services.kit.config import SettingsError
from services.outside.url import mask_words
from services.store import StoreError

DEBUG = "PENSTOCK_DEBUG"  # set: a fault of our own shows its traceback, the store's warnings are shown


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


def failure_for(error: BaseException) -> Failure:
    """Return how a command ends after this error; without a message where none is needed."""
    match error:
        case Failure():
            return error
        case StoreError() | SettingsError():
            return failure_of(error)
        case click.UsageError():
            return Failure(Exit.USAGE, "usage", _usage(error))
        case KeyboardInterrupt() | click.Abort():
            return Failure(Exit.INTERRUPTED, "interrupted", "")
        case asyncio.CancelledError():
            return Failure(Exit.TERMINATED, "terminated", "")
        case BrokenPipeError():
            return Failure(Exit.BROKEN_PIPE, "broken_pipe", "")
        case OSError(errno=errno.EBADF):
            return Failure(Exit.IO, "io_error", "standard output is closed, so the result cannot be written")
        case OSError():
            return Failure(Exit.IO, "io_error", error.strerror or str(error))
        case _:
            text = mask_words(
                f"{type(error).__name__}: {error}; set {DEBUG}=1 to see where, and please report it"
            )
            return Failure(Exit.FAULT, "fault", text)


def _usage(error: click.UsageError) -> str:
    text = mask_words(error.format_message().rstrip("."))
    path = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{text}; see `{path} --help`"
