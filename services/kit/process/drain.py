"""Drain a process: unready, then no new connections, then no new work, then exit.

    SIGTERM ──► grace_s: keep serving while load balancers notice
            ──► stop accepting and dialling; the edge stops taking from the store
            ──► spread_s: ask sessions to end, a few at a time
            ──► timeout_s: wait for them, then reset the rest
            ──► the edge returns what it holds; exit
A second signal skips to the reset.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence

from services.kit.config.settings import DrainSettings
from services.kit.edge import RunningEdge
from services.kit.net.dialler import Dialler
from services.kit.net.listener import Listener

log = logging.getLogger(__name__)

RESET_TIMEOUT_S = 1.0  # for transports to close after a reset
CLOSE_TIMEOUT_S = 10.0  # for the edge to return what it holds
HURRIED_CLOSE_TIMEOUT_S = 1.0  # the same, after a second signal


async def drain(
    groups: Sequence[Listener | Dialler], running: RunningEdge, settings: DrainSettings, hurry: asyncio.Event
) -> bool:
    """End the listeners and diallers of `groups`, and then the edge.

    Return True if everything ended in order, False if `hurry` cut it short.
    """
    started = time.monotonic()
    log.info("draining: no new connections or work", extra={"action": "draining"})
    orderly = asyncio.ensure_future(_in_order(groups, running, settings))
    hurrying = asyncio.ensure_future(hurry.wait())
    await asyncio.wait((orderly, hurrying), return_when=asyncio.FIRST_COMPLETED)
    for task in (orderly, hurrying):
        task.cancel()
    await asyncio.gather(orderly, hurrying, return_exceptions=True)
    hurried = hurry.is_set()
    await _reset(groups)
    await _bounded(running.close(), HURRIED_CLOSE_TIMEOUT_S if hurried else CLOSE_TIMEOUT_S, "close")
    fields = {"action": "drained", "seconds": round(time.monotonic() - started, 3), "hurried": hurried}
    log.info("drained: all sessions have ended", extra=fields)
    return not hurried


async def _in_order(
    groups: Sequence[Listener | Dialler], running: RunningEdge, settings: DrainSettings
) -> None:
    await asyncio.sleep(settings.grace_s)
    for group in groups:
        group.stop_opening()
    await _bounded(_in_time(running.stop_taking(), settings.timeout_s), None, "stop_taking")
    await asyncio.gather(*(group.drain(settings.spread_s) for group in groups))
    await asyncio.gather(*(group.closed(settings.timeout_s) for group in groups))


async def _reset(groups: Sequence[Listener | Dialler]) -> None:
    for group in groups:
        group.stop_opening()
        if left := len(group.connections):
            fields = {"action": "drain_reset", "listener": group.name, "connections": left}
            log.warning("%d connections did not end in time and are reset", left, extra=fields)
        group.abort_all()
    await asyncio.gather(*(group.closed(RESET_TIMEOUT_S) for group in groups))


async def _in_time(step: Awaitable[None], timeout_s: float) -> None:
    """Cancel the edge's step after `timeout_s`; this is not an error, as with connections that are reset."""
    try:
        async with asyncio.timeout(timeout_s) as waiting:
            await step
    except TimeoutError:
        if not waiting.expired():
            raise
        fields = {"action": "drain_cut_short", "seconds": timeout_s}
        log.warning("the edge's work did not end within %g s and is cancelled", timeout_s, extra=fields)


async def _bounded(step: Awaitable[None], timeout_s: float | None, name: str) -> None:
    """Await a step of the edge; log its failure, so that the drain continues."""
    try:
        async with asyncio.timeout(timeout_s):
            await step
    except Exception as error:
        fields = {"action": "drain_step_failed", "step": name}
        log.error("the edge failed in %s, the drain continues: %r", name, error, exc_info=error, extra=fields)
