"""`penstock`: the commands, and what becomes of everything that can go wrong in them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys

import click

from services.cli.exits import Exit, Failure, failure_of
from services.cli.output import complain
from services.kit.settings import SettingsError
from services.store import StoreError

DEBUG = "PENSTOCK_DEBUG"  # set: a fault of our own shows its traceback, the store's warnings are shown


# A command is the attribute of its own name. Only the one that runs is imported, so that it starts sooner.
MODULES = {
    "up": "services.cli.up",
    "serve": "services.cli.serve",
    "queue": "services.cli.queues",
    "put": "services.cli.put",
    "get": "services.cli.get",
    "peek": "services.cli.get",
    "dead": "services.cli.dead",
    "config": "services.cli.config",
    "doctor": "services.cli.doctor",
    "store": "services.cli.store",
}


class Commands(click.Group):
    """The commands, in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
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
    if DEBUG not in os.environ:  # a command says in one line what is wrong; `up` and `serve` set up logs of their own
        logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        code = penstock.main(arguments, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
        return int(code or Exit.OK)
    except Failure as failure:
        return _reader_gone() if failure.exit is Exit.BROKEN_PIPE else _failed(failure, as_json)
    except (StoreError, SettingsError) as error:
        return _failed(failure_of(error), as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return Exit.USAGE
    except click.UsageError as error:
        return _failed(Failure(Exit.USAGE, "usage", _usage(error)), as_json)
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except asyncio.CancelledError:
        return Exit.TERMINATED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _failed(Failure(Exit.IO, "io_error", f"{error.strerror or error}"), as_json)
    except Exception as error:
        if DEBUG in os.environ:
            raise
        message = f"{type(error).__name__}: {error}; set {DEBUG}=1 to see where, and please report it"
        return _failed(Failure(Exit.FAULT, "fault", message), as_json)


def _reader_gone() -> int:
    """Quietly: Python would try to flush again at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE


def _failed(failure: Failure, as_json: bool) -> int:
    complain(failure, as_json=as_json)
    return failure.exit


def _usage(error: click.UsageError) -> str:
    text = error.format_message().rstrip(".")
    path = error.ctx.command_path if error.ctx is not None else "penstock"
    return f"{text}; see `{path} --help`"


if __name__ == "__main__":
    main()
