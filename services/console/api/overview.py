"""Handlers of the overview and of the caller's identity."""

from __future__ import annotations

from services.console.core.route import Answer, Call


async def overview(call: Call) -> Answer:
    """Show the store and totals."""
    await call.console.live.snapshot()
    return Answer(call.console.live.overview())


async def me(call: Call) -> Answer:
    """Show the caller."""
    return Answer(call.caller.document())
