"""Build the API's document of an edge process."""

from __future__ import annotations

from typing import Any

from services.console.contract.moments import moment
from services.store.processes import Process


def edge_document(process: Process) -> dict[str, Any]:
    """Return the document of a process."""
    return {
        "process": process.name,
        "edge": process.edge,
        "version": process.version,
        "host": process.host,
        "pid": process.pid,
        "startedAt": moment(process.started_ms),
        "seenAt": moment(process.seen_ms),
        "ready": process.unready is None,
        "unready": process.unready,
        "listeners": [{"name": name, "address": address} for name, address in process.listeners],
        "connections": process.connections,
        "health": process.health,
    }
