"""Run an edge, in this process or in several workers."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.kit import logs
from services.kit.config.flags import GivenFlag
from services.kit.config.layers import SettingsError, read_flags
from services.kit.config.settings import GlobalSettings, load
from services.kit.edge import Edge, SettingsT
from services.kit.process.process import EXIT_FAILED, EXIT_UNUSABLE
from services.kit.startup import prepare_streams
from services.kit.workers.workers import run_edge_processes
from services.outside.url import BadUrl

log = logging.getLogger(__name__)


def run_edge(edge: Edge[SettingsT], settings: GlobalSettings, *, workers: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT, drain, and return the exit status. Sets up logging.

    `workers` overrides the edge's settings.
    """
    logs.configure(settings.log, edge=edge.name)
    try:
        return run_edge_processes(edge, settings, settings.edge(edge), workers)
    except SettingsError as error:
        return print_settings_error(error)
    except BadUrl as error:
        return print_settings_error(SettingsError([f"store.url: {error}"]))
    except Exception as error:
        log.critical(
            "internal error, the edge cannot run: %r", error, exc_info=error, extra={"action": "failed"}
        )
        return EXIT_FAILED


def main(edge: Edge[Any], arguments: Sequence[str] | None = None) -> int:
    """Run the command line of one edge: `python -m services.tmq --set health.port=0`."""
    prepare_streams()
    parser = argparse.ArgumentParser(description=f"Serve {edge.name} from the queue store.")
    parser.add_argument("--config", type=Path, help="settings file; default: penstock.yaml, if it exists")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    parser.add_argument("--workers", type=int, help="number of processes; default: the edge's settings")
    for flag in edge.flags:
        action = "append" if flag.repeatable else "store"
        text = flag.help.replace("%", "%%")
        parser.add_argument(flag.name, dest=flag.name, action=action, metavar=flag.metavar, help=text)
    options = parser.parse_args(arguments)
    try:
        settings = load(options.config, read_flags(options.set), _given(edge, options))
    except SettingsError as error:
        return print_settings_error(error)
    return run_edge(edge, settings, workers=options.workers)


def _given(edge: Edge[Any], options: argparse.Namespace) -> list[GivenFlag]:
    values = [(flag, getattr(options, flag.name)) for flag in edge.flags]
    return [
        GivenFlag(edge.name, flag, tuple(value) if flag.repeatable else (value,))
        for flag, value in values
        if value is not None
    ]


def print_settings_error(error: SettingsError) -> int:
    """Print the errors to standard error, and return the exit status for them."""
    for line in error.lines:
        print(f"penstock: {line}", file=sys.stderr)
    return EXIT_UNUSABLE
