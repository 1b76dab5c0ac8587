"""Implement `penstock console`, and what `penstock up` needs to run the console beside the edges."""

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
# default of the console's health pages: outside the range that `penstock up` gives to edges
HEALTH_PORT = 9181


@click.command()
@plain_command
def console(options: Options) -> int:
    """Serve the console: the web page and its HTTP API.

    Runs until SIGTERM or Ctrl-C. The settings under `console` say where it listens and how users sign in. By default
    it listens on this machine only, creates an access token in the data folder, and prints a link with that token.
    """
    console_settings(options)
    return serve_console(options.with_health_port(HEALTH_PORT), as_json=options.as_json)


def serve_console(settings: GlobalSettings, *, as_json: bool, may_move: bool = False) -> int:
    """Serve until a signal; return the exit status. may_move: use another port if this one is taken. Raises Failure."""
    process = console_module()
    own = settings.section(ConsoleSettings, SECTION, {})
    try:
        return int(process.run(settings, own, may_move=may_move, as_json=as_json))
    except SettingsError as error:
        text = f"the console cannot start: {'; '.join(error.lines)}"
        raise Failure(Exit.USAGE, "console_unusable", text) from None


def console_settings(options: Options) -> ConsoleSettings:
    """Return the console's settings. Raises SettingsError."""
    return options.settings.section(ConsoleSettings, SECTION, {})


def own_token(options: Options, settings: ConsoleSettings) -> Path | None:
    """Return the file of the console's own token, or None where tokens or a proxy are set up. Raises SettingsError."""
    return local_token.keep(options.settings.store.data_dir) if settings.is_local else None


def console_module() -> Any:
    """Import the console, which needs google-re2. Raises Failure without it."""
    try:
        from services.console import process
    except ImportError as error:
        if error.name != "re2":
            raise
        text = (
            "google-re2 is not installed: install Penstock with the extra `console`, from the checkout or the wheel "
            "that it came from, or run `penstock up` without the console: --set console.enabled=false"
        )
        raise Failure(Exit.USAGE, "no_re2", text) from None
    return process
