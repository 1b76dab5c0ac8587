"""Handler of the analytics report."""

from __future__ import annotations

from services.console.contract.problems import Problem
from services.console.core.route import Answer, Call
from services.store.report import read_report


async def show(call: Call) -> Answer:
    """Show the latest report."""
    found = await read_report(call.console.store.registry)
    if found is None:
        raise Problem(404, "no_report", "no report yet: run the analytics job")
    return Answer(found.model_dump(mode="json", by_alias=True))
