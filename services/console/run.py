"""Parse the command line of `python -m services.console`, and run the console."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from services.console.process import run
from services.console.settings import ConsoleSettings
from services.kit.config import SettingsError, load, read_flags
from services.kit.startup import prepare_streams
from services.kit.workers import print_settings_error

SECTION = "console"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console and return the exit code."""
    prepare_streams()
    parser = argparse.ArgumentParser(description="Serve the console and its HTTP API.")
    parser.add_argument("--config", type=Path, help="settings file; default: penstock.yaml, if it exists")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    options = parser.parse_args(arguments)
    try:
        settings = load(options.config, read_flags(options.set))
        return run(settings, settings.section(ConsoleSettings, SECTION, {}))
    except SettingsError as error:
        return print_settings_error(error)
