"""Work on the store beside the loop of requests: what is not asked of a pipe, and so has a coroutine to wait for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.store.model.errors import OutcomeUnknown, StoreError, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """Those of one process that are under way."""

    def __init__(self, timeout_s: float, on_failure: Callable[[], None]) -> None:
        """timeout_s: how long anything may take. on_failure: called for each fault of ours, to count it."""
        self._timeout_s = timeout_s
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        """Does the work; `done` is told its end, unless `close` comes first."""
        self._start(work, done, OutcomeUnknown())

    def run_read(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        """As `ask`, for work that changes nothing: whatever happens, nothing was done."""
        self._start(work, done, StoreUnavailable())

    def _start(self, work: Awaitable[T], done: Callable[[T | StoreError], None], late: StoreError) -> None:
        task = asyncio.ensure_future(self._ask(work, done, late))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Nobody waits for them any more: what went on would open the store again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(
        self, work: Awaitable[T], done: Callable[[T | StoreError], None], late: StoreError
    ) -> None:
        done(await self._outcome(work, late))

    async def _outcome(self, work: Awaitable[T], late: StoreError) -> T | StoreError:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work
        except StoreError as error:
            return error
        except TimeoutError:
            return late
        except Exception as error:
            log.exception("work on a queue failed", extra={"action": "queue_work_failed"})
            self._on_failure()
            return StoreError(str(error))
