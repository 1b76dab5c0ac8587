"""The command line of the console's own program: `python -m services.console --set console.port=0`."""

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
    prepare_streams()
    parser = argparse.ArgumentParser(description="Serve the console and its HTTP API.")
    parser.add_argument("--config", type=Path, help="settings file; default: penstock.yaml, if there is one")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    told = parser.parse_args(arguments)
    try:
        settings = load(told.config, read_flags(told.set))
        return run(settings, settings.section(ConsoleSettings, SECTION, {}))
    except SettingsError as error:
        return print_settings_error(error)
