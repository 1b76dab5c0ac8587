"""Run an edge: in this process, or in several that share its ports."""

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
    """Serve until SIGTERM or SIGINT, drain, and return the exit status. Sets up logging for the process.

    `workers`: None for what the edge's settings say.
    """
    logs.configure(settings.log, edge=edge.name)
    try:
        return run_edge_processes(edge, settings, settings.edge(edge), workers)
    except SettingsError as error:
        return print_settings_error(error)
    except BadUrl as error:
        return print_settings_error(SettingsError([f"store.url: {error}"]))
    except Exception as error:
        log.critical("cannot run: %r", error, exc_info=error, extra={"action": "failed"})
        return EXIT_FAILED


def main(edge: Edge[Any], arguments: Sequence[str] | None = None) -> int:
    """The command line of one edge's own program: `python -m services.tmq --set health.port=0`."""
    prepare_streams()
    parser = argparse.ArgumentParser(description=f"Serve {edge.name} from the queue store.")
    parser.add_argument("--config", type=Path, help="settings file; default: penstock.yaml, if there is one")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    parser.add_argument("--workers", type=int, help="processes; default: what the edge's settings say")
    for flag in edge.flags:
        action = "append" if flag.repeatable else "store"
        text = flag.help.replace("%", "%%")
        parser.add_argument(flag.name, dest=flag.name, action=action, metavar=flag.metavar, help=text)
    told = parser.parse_args(arguments)
    try:
        settings = load(told.config, read_flags(told.set), _given(edge, told))
    except SettingsError as error:
        return print_settings_error(error)
    return run_edge(edge, settings, workers=told.workers)


def _given(edge: Edge[Any], told: argparse.Namespace) -> list[GivenFlag]:
    values = [(flag, getattr(told, flag.name)) for flag in edge.flags]
    return [
        GivenFlag(edge.name, flag, tuple(value) if flag.repeatable else (value,))
        for flag, value in values
        if value is not None
    ]


def print_settings_error(error: SettingsError) -> int:
    """Tell whoever started us what is wrong, in plain lines; returns the exit status for it."""
    for line in error.lines:
        print(f"penstock: {line}", file=sys.stderr)
    return EXIT_UNUSABLE
