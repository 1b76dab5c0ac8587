"""Share one lookup between concurrent requests, as when thousands of clients reconnect and open the same queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from services.store.model.errors import StoreUnavailable

T = TypeVar("T")
STOPPING = "this process is stopping: queues are no longer opened"


class Sharing(Generic[T]):
    """Shared lookups by name. A lookup always starts after the request that it answers, so it sees earlier changes."""

    def __init__(self, find: Callable[[str], Awaitable[T]]) -> None:
        self._find = find
        self._closed = False
        self._under_way: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}  # starts when the one in progress has ended

    async def ask(self, name: str) -> T:
        """Return or raise the result of `find(name)`. Raises StoreUnavailable once closed."""
        if self._closed:
            raise StoreUnavailable(STOPPING)
        task = self._next.get(name)
        if task is None:
            task = self._next[name] = asyncio.create_task(self._find_next(name), name=f"find {name!r}")
            task.add_done_callback(_ignore_outcome)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelled():
                raise StoreUnavailable(STOPPING) from None
            raise

    async def _find_next(self, name: str) -> T:
        if (other := self._under_way.get(name)) is not None:
            await asyncio.wait((other,))
        task = self._under_way[name] = self._next.pop(name)
        try:
            return await self._find(name)
        finally:
            if self._under_way.get(name) is task:
                del self._under_way[name]

    async def close(self) -> None:
        """Fail all requests in progress, and later ones, with StoreUnavailable."""
        self._closed = True
        tasks = [*self._under_way.values(), *self._next.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_cancelled() -> bool:
    """Return whether the requesting task itself is cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _ignore_outcome(task: asyncio.Task[T]) -> None:
    """Retrieve the exception, so that asyncio does not log it if the requester is gone."""
    if not task.cancelled():
        task.exception()
