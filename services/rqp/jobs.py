"""Run background tasks that survive internal errors: each error is logged and counted, and the task restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from services.kit.metrics import Metrics

log = logging.getLogger(__name__)

AGAIN_S = 1.0


def start_job(work: Callable[[], Awaitable[None]], name: str, metrics: Metrics) -> asyncio.Task[None]:
    """Start a task that runs `work`, and starts it over after an internal error."""
    return asyncio.create_task(_keep_running(work, name, metrics), name=name)


async def stop_job(task: asyncio.Task[None] | None) -> None:
    """Cancel a job and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))


async def _keep_running(work: Callable[[], Awaitable[None]], name: str, metrics: Metrics) -> None:
    while True:
        try:
            await work()
        except Exception:
            text = "internal error in background task %r, restarting it"
            log.exception(text, name, extra={"action": "job_failed", "job": name})
            metrics.local_errors.inc()
            await asyncio.sleep(AGAIN_S)
        else:
            return
