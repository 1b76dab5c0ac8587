"""`penstock`: the commands, and how their errors become a line and an exit code."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys

import click

from services.cli.terminal.exits import Exit
from services.cli.terminal.failures import DEBUG, complain, failure_for, finish_output
from services.kit.startup import paused_gc

# Each module has the command as the attribute of that name. Only the one that runs is imported, to start faster.
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
    "analytics": "services.cli.commands.analytics",
    "sysv": "services.cli.commands.sysv",
    "console": "services.cli.commands.console",
    "config": "services.cli.commands.config",
    "doctor": "services.cli.commands.doctor",
    "store": "services.cli.commands.store",
}


class Commands(click.Group):
    """The commands, in the order of the help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in order."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return the command, or None if there is none of this name."""
        if cmd_name not in MODULES:
            return None
        with paused_gc():
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
    """Run the command and end the process with one of `Exit`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code, one of `Exit`."""
    as_json = "--json" in arguments
    # commands report errors in one line; `up` and `serve` configure their own logs
    if DEBUG not in os.environ:
        logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        code = penstock.main(arguments, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or Exit.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return Exit.USAGE
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
        failure = failure_for(error)
        if failure.exit is Exit.FAULT and DEBUG in os.environ:
            raise
    finish_output()
    if failure.message:
        complain(failure, as_json=as_json)
    return failure.exit


if __name__ == "__main__":
    main()
