"""Waiting for what must come to pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

LOOK_S = 0.1  # between two looks at something that takes its time


class Stuck(Exception):
    """it did not come to pass in time"""


async def eventually(condition: Callable[[], Awaitable[Any]], patience_s: float, what: str) -> None:
    """Raises Stuck."""
    end = time.monotonic() + patience_s
    while not await condition():
        if time.monotonic() > end:
            raise Stuck(f"{what}: not within {patience_s:g} s")
        await asyncio.sleep(LOOK_S)


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Waits for all, then raises the first fault: nothing is left half done."""
    for ended in await asyncio.gather(*work, return_exceptions=True):
        if ended is not None:
            raise ended
