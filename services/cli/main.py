"""`penstock`: the commands, and what becomes of everything that can go wrong in them."""

from __future__ import annotations

import asyncio
import errno
import importlib
import logging
import os
import sys

import click

from services.cli.terminal.exits import Exit, Failure, failure_of
from services.cli.terminal.failures import complain, finish_output
from services.kit.config import SettingsError
from services.kit.startup import importing
from services.outside.url import mask_words
from services.store import StoreError

DEBUG = "PENSTOCK_DEBUG"  # set: a fault of our own shows its traceback, the store's warnings are shown


# A command is the attribute of its own name. Only the one that runs is imported, so that it starts sooner.
MODULES = {
    "up": "services.cli.commands.up",
    "serve": "services.cli.commands.serve",
    "queue": "services.cli.commands.queues",
    "peer": "services.cli.commands.peers",
    "put": "services.cli.commands.put",
    "get": "services.cli.commands.get",
    "peek": "services.cli.commands.get",
    "dead": "services.cli.commands.dead",
    "rqp": "services.cli.commands.rqp",
    "log": "services.cli.commands.log",
    "ring": "services.cli.commands.ring",
    "report": "services.cli.commands.report",
    "sysv": "services.cli.commands.sysv",
    "console": "services.cli.commands.console",
    "config": "services.cli.commands.config",
    "doctor": "services.cli.commands.doctor",
    "store": "services.cli.commands.store",
}


class Commands(click.Group):
    """The commands, in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        with importing():
            command: click.Command = getattr(importlib.import_module(MODULES[cmd_name]), cmd_name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="penstock")
def penstock() -> None:
    """Many queue protocols, one durable stream.

    `penstock up` runs everything on this machine; the other commands work with the queues of a running store.
    Exit codes: 0 ok, 1 refused, 2 usage or settings, 3 store unavailable, 4 not found, 5 outcome unknown.
    """


def main() -> None:
    """The entry point: ends the process with one of `Exit`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    if (
        DEBUG not in os.environ
    ):  # a command says in one line what is wrong; `up` and `serve` set up logs of their own
        logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        code = penstock.main(arguments, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or Exit.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return Exit.USAGE
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
        failure = _ending(error)
        if failure.exit is Exit.FAULT and DEBUG in os.environ:
            raise
    finish_output()
    if failure.message:
        complain(failure, as_json=as_json)
    return failure.exit


def _ending(error: BaseException) -> Failure:
    """What a command ends with; without a message where everybody knows already."""
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


if __name__ == "__main__":
    main()
