"""Turn errors into failures and print them."""

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

DEBUG = "PENSTOCK_DEBUG"  # if set: shows tracebacks of internal errors, and warnings of the store


def finish_output() -> None:
    """Flush the output; if that fails, redirect it to /dev/null, since Python would retry at exit and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(failure: Failure, *, as_json: bool) -> None:
    """Print the failure to standard error, one line per fault."""
    if as_json:
        text = json.dumps({"error": failure.label, "message": failure.message, "exit": int(failure.exit)})
    else:
        lines = failure.message.split("\n")
        text = "\n".join(printable(f"penstock: {failure.label}: {line}") for line in lines)
    sys.stderr.write(text + "\n")


def failure_for(error: BaseException) -> Failure:
    """Return the failure for any error; its message is empty if none is needed."""
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
                f"{type(error).__name__}: {error}; set {DEBUG}=1 for a traceback, and please report it"
            )
            return Failure(Exit.FAULT, "fault", text)


def _usage(error: click.UsageError) -> str:
    text = mask_words(error.format_message().rstrip("."))
    path = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{text}; see `{path} --help`"
