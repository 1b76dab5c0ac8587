"""Keys that wait to be looked at: each by one worker at a time, once however often it was added meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakValueDictionary

from penstock_operator.cluster.resources import Key

log = logging.getLogger(__name__)

WORKERS = 16
FIRST_PAUSE_S = 0.5  # after a failure
LONGEST_PAUSE_S = 60.0
LONGEST_UNSETTLED_S = 10.0  # where the store could not do it: it may at any time

Look = Callable[[Key], Awaitable[bool | None]]


class Work:
    """`look` sees to one key; what it raises is told, and the key comes again, later each time.

    If it answers False it comes again, too, as not all could be done. `first` goes before all that wait.
    """

    def __init__(
        self, look: Look, failed: Callable[[Key, Exception], None], first: Key | None = None
    ) -> None:
        self._look = look
        self._failed = failed
        self._first = first
        self._waiting: dict[Key, None] = {}  # in the order of their coming
        self._some = asyncio.Event()
        self._failures: dict[Key, int] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._busy: set[Key] = set()  # a worker has it

    def add(self, key: Key) -> None:
        self._cancel(key)
        self._waiting[key] = None
        self._some.set()

    def add_after(self, key: Key, pause_s: float) -> None:
        """Once, if nobody adds it before."""
        if key not in self._waiting:
            self._cancel(key)
            self._later[key] = asyncio.get_running_loop().call_later(pause_s, self.add, key)

    def forget(self, key: Key) -> None:
        self._cancel(key)
        self._waiting.pop(key, None)
        self._failures.pop(key, None)

    @property
    def depth(self) -> int:
        """Keys that wait or are being looked at."""
        return len(self._waiting) + len(self._busy)

    @contextlib.asynccontextmanager
    async def alone(self, key: Key) -> AsyncIterator[None]:
        """Nobody else looks at it meanwhile."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            yield

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._next()
            self._busy.add(key)
            try:
                async with self.alone(key):
                    await self._try(key)
            finally:
                self._busy.remove(key)  # if it has come again meanwhile this worker finds it

    async def _next(self) -> Key:
        """The first that no worker has: of one that changes all the time they would all wait for each other."""
        while True:
            if (key := self._free()) is not None:
                del self._waiting[key]
                return key
            self._some.clear()
            await self._some.wait()

    def _free(self) -> Key | None:
        if self._first in self._waiting and self._first not in self._busy:
            return self._first
        return next((key for key in self._waiting if key not in self._busy), None)

    async def _try(self, key: Key) -> None:
        try:
            settled = await self._look(key)
        except Exception as error:  # noqa: BLE001 - one object must not end the work on all others
            self._failed(key, error)
            self._again(key, LONGEST_PAUSE_S)
        else:
            if settled is False:
                self._again(key, LONGEST_UNSETTLED_S)
            else:
                self._failures.pop(key, None)

    def _again(self, key: Key, longest_s: float) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause_s = min(FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), longest_s)
        self.add_after(key, pause_s * random.uniform(0.8, 1.2))

    def _cancel(self, key: Key) -> None:
        timer = self._later.pop(key, None)
        if timer is not None:
            timer.cancel()
