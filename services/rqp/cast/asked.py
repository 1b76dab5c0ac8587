"""Verbs of the store with `await`, for whoever does one thing after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from services.store import StoreError


async def asked(ask: Callable[[Callable[[Any], None]], None]) -> Any:
    """The answer of a verb that tells it to a callback. Raises StoreError."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(told: Any) -> None:
        if answer.done():
            return
        if isinstance(told, StoreError):
            answer.set_exception(told)
        else:
            answer.set_result(told)

    ask(done)
    return await answer
