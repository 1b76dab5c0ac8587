"""Handler of edge processes."""

from __future__ import annotations

from services.console.core.route import Answer, Call
from services.console.live.processes import edge_document
from services.console.queries.paging import page_of

LIST = "edges"


async def list_(call: Call) -> Answer:
    """List edge processes by name, which begins with the edge's name."""
    found = sorted(await call.console.store.processes.running(), key=lambda process: process.name)
    return Answer(page_of(LIST, found, call.query, lambda process: process.name, edge_document))
