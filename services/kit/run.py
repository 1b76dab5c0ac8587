"""Run an edge: in this process, or in several that share its ports."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.kit import logs
from services.kit.edge import Edge, SettingsT
from services.kit.layers import SettingsError, read_flags
from services.kit.process import EXIT_FAILED, EXIT_UNUSABLE, EdgeProcess, run_process
from services.kit.settings import GlobalSettings, load
from services.kit.workers import Supervisor

log = logging.getLogger(__name__)


def run_edge(edge: Edge[SettingsT], settings: GlobalSettings, *, workers: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT, drain, and return the exit status. Sets up logging for the process.

    `workers`: None for what the edge's settings say.
    """
    logs.configure(settings.log, edge=edge.name)
    try:
        edge_settings = settings.edge(edge)
        number = workers or edge_settings.workers
        if number > 1:
            return Supervisor(edge, settings, edge_settings, number).run()
        return run_process(EdgeProcess(edge, settings, edge_settings))
    except SettingsError as error:
        return complain(error)
    except Exception as error:
        log.critical("cannot run: %r", error, exc_info=error, extra={"action": "failed"})
        return EXIT_FAILED


def main(edge: Edge[Any], arguments: Sequence[str] | None = None) -> int:
    """The command line of one edge's own program: `python -m services.tmq --set health.port=0`."""
    parser = argparse.ArgumentParser(description=f"Serve {edge.name} from the queue store.")
    parser.add_argument("--config", type=Path, help="settings file; default: penstock.yaml, if there is one")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    parser.add_argument("--workers", type=int, help="processes; default: what the edge's settings say")
    given = parser.parse_args(arguments)
    try:
        settings = load(given.config, read_flags(given.set))
    except SettingsError as error:
        return complain(error)
    return run_edge(edge, settings, workers=given.workers)


def complain(error: SettingsError) -> int:
    """Tell whoever started us what is wrong, in plain lines; returns the exit status for it."""
    for line in error.lines:
        print(f"penstock: {line}", file=sys.stderr)
    return EXIT_UNUSABLE
