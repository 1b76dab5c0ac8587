"""Processes of edges."""

from __future__ import annotations

from services.console.core.route import Answer, Call
from services.console.live.processes import edge_of
from services.console.queries.paging import page_of

LIST = "edges"


async def list_(call: Call) -> Answer:
    """In the order of their names, which begin with their edge's."""
    found = sorted(await call.console.store.processes.running(), key=lambda process: process.name)
    return Answer(page_of(LIST, found, call.query, lambda process: process.name, edge_of))
