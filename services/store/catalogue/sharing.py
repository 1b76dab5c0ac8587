"""Many who ask the same at once share one answer: ten thousand clients that come back all open the same few queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from services.store.model.errors import StoreUnavailable

T = TypeVar("T")
STOPPING = "this process is stopping: nothing is looked for any more"


class Sharing(Generic[T]):
    """An answer was looked for after whoever gets it had asked: he may have just made what he asks for."""

    def __init__(self, look: Callable[[str], Awaitable[T]]) -> None:
        self._look = look
        self._closed = False
        self._under_way: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}  # it begins when the one under way has ended

    async def ask(self, name: str) -> T:
        """What `look(name)` answers, or raises. Raises StoreUnavailable once closed."""
        if self._closed:
            raise StoreUnavailable(STOPPING)
        task = self._next.get(name)
        if task is None:
            task = self._next[name] = asyncio.create_task(
                self._after_the_other(name), name=f"look for {name!r}"
            )
            task.add_done_callback(_ignore_outcome)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelled():
                raise StoreUnavailable(STOPPING) from None
            raise

    async def _after_the_other(self, name: str) -> T:
        if (other := self._under_way.get(name)) is not None:
            await asyncio.wait((other,))
        task = self._under_way[name] = self._next.pop(name)
        try:
            return await self._look(name)
        finally:
            if self._under_way.get(name) is task:
                del self._under_way[name]

    async def close(self) -> None:
        """Nobody waits for an answer any more: who does is told so."""
        self._closed = True
        tasks = [*self._under_way.values(), *self._next.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_cancelled() -> bool:
    """Whether it is the one who asked that is to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _ignore_outcome(task: asyncio.Task[T]) -> None:
    """Whoever asked may have gone: then nobody is told, and asyncio need not complain of it."""
    if not task.cancelled():
        task.exception()
