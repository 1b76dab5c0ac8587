"""Run store operations in the background for code that cannot wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.store.model.errors import OutcomeUnknown, StoreError, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """The background operations of one process."""

    def __init__(self, timeout_s: float, on_failure: Callable[[], None]) -> None:
        """timeout_s: of each operation. on_failure: called for each internal error."""
        self._timeout_s = timeout_s
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        """Run an operation, and call `done` with its result unless `close` comes first."""
        self._start(work, done, OutcomeUnknown())

    def run_read(self, work: Awaitable[T], done: Callable[[T | StoreError], None]) -> None:
        """Run an operation that changes nothing, so that a timeout means that nothing was done."""
        self._start(work, done, StoreUnavailable())

    def _start(self, work: Awaitable[T], done: Callable[[T | StoreError], None], late: StoreError) -> None:
        async def run() -> None:
            done(await self._result(work, late))

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all operations, which would otherwise reconnect to the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _result(self, work: Awaitable[T], late: StoreError) -> T | StoreError:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work
        except StoreError as error:
            return error
        except TimeoutError:
            return late
        except Exception as error:
            log.exception("store operation failed: internal error", extra={"action": "queue_work_failed"})
            self._on_failure()
            return StoreError(str(error))
