"""Run an edge in this process and turn its errors into failures that name the setting."""

from __future__ import annotations

import logging
from typing import Any

from services.cli.terminal.exits import Exit, Failure
from services.kit import logs
from services.kit.config import GlobalSettings, SettingsError
from services.kit.edge import Edge, EdgeSettings
from services.kit.net import server_context
from services.kit.process import EXIT_UNUSABLE
from services.kit.workers import run_edge_processes

log = logging.getLogger(__name__)


def serve_edge(edge: Edge[Any], settings: GlobalSettings, workers: int | None = None) -> int:
    """Serve until a signal; return 0, or 1 after a disorderly end. Raises SettingsError, Failure."""
    logs.configure(settings.log, edge=edge.name)
    edge_settings = settings.edge(edge)
    check(edge.name, edge_settings)
    try:
        status = run_edge_processes(edge, settings, edge_settings, workers)
    except SettingsError as error:
        raise _unusable(edge.name, "; ".join(error.lines)) from None
    except Exception as error:
        log.critical(
            "%s stopped after an internal error: %r",
            edge.name,
            error,
            exc_info=error,
            extra={"action": "failed"},
        )
        text = f"{edge.name} failed: {type(error).__name__}: {error}; see its log"
        raise Failure(Exit.REFUSED, "edge_failed", text) from None
    if status == EXIT_UNUSABLE:  # the workers have logged the reason
        raise _unusable(edge.name, "see its log")
    return status


def check(name: str, edge_settings: EdgeSettings) -> None:
    """Raise Failure, with the setting, if a listener's TLS files cannot be used."""
    for listener, its in edge_settings.listeners.items():
        try:
            if its.tls is not None:
                server_context(its.tls)
        except SettingsError as error:
            raise _unusable(name, f"{error}; change edges.{name}.listeners.{listener}.tls") from None


def _unusable(name: str, why: str) -> Failure:
    return Failure(Exit.USAGE, "edge_unusable", f"{name} cannot start: {why}")
