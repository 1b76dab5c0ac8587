"""Helpers that wait for conditions and tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

POLL_S = 0.1  # polling interval


class Stuck(Exception):
    """A condition did not hold in time."""


async def eventually(condition: Callable[[], Awaitable[Any]], patience_s: float, what: str) -> None:
    """Poll until the condition holds. Raise Stuck after `patience_s`."""
    end = time.monotonic() + patience_s
    while not await condition():
        if time.monotonic() > end:
            raise Stuck(f"{what}: not within {patience_s:g} s")
        await asyncio.sleep(POLL_S)


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Wait for all tasks to end, then raise the first exception, so that no task is left running."""
    for ended in await asyncio.gather(*work, return_exceptions=True):
        if ended is not None:
            raise ended
