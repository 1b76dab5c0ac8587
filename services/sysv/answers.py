"""Verbs of the pipe, one after the other: each is answered before the next is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from services.store import StoreError


async def answered(
    ask: Callable[[Callable[..., None]], None], unwanted: Callable[[Any], None] | None = None
) -> Any:
    """`ask(done)` asks; what `done` is told is answered, or raised if it is a StoreError.

    unwanted: gets the answer if the caller was cancelled meanwhile.
    """
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(answer: Any = None, *_more: Any) -> None:
        if future.done():
            if unwanted is not None and not isinstance(answer, StoreError):
                unwanted(answer)
        elif isinstance(answer, StoreError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    ask(done)
    return await future
