"""Work that goes on as long as the edge does: a fault of ours in it is told, counted, and does not end it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from services.kit.metrics import Metrics

log = logging.getLogger(__name__)

AGAIN_S = 1.0


def start_job(work: Callable[[], Awaitable[None]], name: str, metrics: Metrics) -> asyncio.Task[None]:
    """A task that does the work, from the beginning again after a fault."""
    return asyncio.create_task(_keep_doing(work, name, metrics), name=name)


async def stop_job(task: asyncio.Task[None] | None) -> None:
    """Cancels a job; returns when it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))


async def _keep_doing(work: Callable[[], Awaitable[None]], name: str, metrics: Metrics) -> None:
    while True:
        try:
            await work()
        except Exception:
            log.exception("%s failed", name, extra={"action": "job_failed", "job": name})
            metrics.local_errors.inc()
            await asyncio.sleep(AGAIN_S)
        else:
            return
