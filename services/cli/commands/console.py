"""penstock console; and what `penstock up` has to know of it, to run it beside the edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from services.cli.framework.command import Options, plain_command
from services.cli.terminal.exits import Exit, Failure
from services.console.access import local_token
from services.console.settings import ConsoleSettings
from services.kit.config import GlobalSettings, SettingsError

SECTION = "console"
HEALTH_PORT = 9181  # of the console, where nobody said one: no edge of a `penstock up` on this machine has it


@click.command()
@plain_command
def console(options: Options) -> int:
    """Serve the console: its page, and an HTTP API.

    Until SIGTERM or Ctrl-C. Where it listens and who may come is said in the settings under `console`. Without them
    it serves this machine, with a token of its own in the data folder, and prints a link that has it.
    """
    console_settings(options)
    return serve_console(options.beside_others(HEALTH_PORT), as_json=options.as_json)


def serve_console(settings: GlobalSettings, *, as_json: bool, may_move: bool = False) -> int:
    """Serve until told to end; returns the exit status. may_move: if another program has the port. Raises Failure."""
    process = console_module()
    own = settings.section(ConsoleSettings, SECTION, {})
    try:
        return int(process.run(settings, own, may_move=may_move, as_json=as_json))
    except SettingsError as error:
        text = f"the console cannot start: {'; '.join(error.lines)}"
        raise Failure(Exit.USAGE, "console_unusable", text) from None


def console_settings(options: Options) -> ConsoleSettings:
    """Raises SettingsError."""
    return options.settings.section(ConsoleSettings, SECTION, {})


def own_token(options: Options, settings: ConsoleSettings) -> Path | None:
    """Return the file of the console's own token, or None where tokens or a proxy are set up. Raises SettingsError."""
    return local_token.keep(options.settings.store.data_dir) if settings.is_local else None


def console_module() -> Any:
    """The part that needs more than the rest of the command line does."""
    try:
        from services.console import process
    except ImportError as error:
        if error.name != "re2":
            raise
        text = (
            "this installation lacks google-re2: install Penstock with the extra `console`, from the checkout or the "
            "wheel that it came from, or let `penstock up` run without the console: --set console.enabled=false"
        )
        raise Failure(Exit.USAGE, "no_re2", text) from None
    return process
