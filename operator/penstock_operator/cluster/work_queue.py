"""A work queue of keys to reconcile: each key by one worker at a time, with retries and backoff."""

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
FIRST_PAUSE_S = 0.5  # first retry after a failure
LONGEST_PAUSE_S = 60.0
LONGEST_UNSETTLED_S = 10.0  # longest retry interval if the store was the cause

Reconcile = Callable[[Key], Awaitable[bool | None]]


class WorkQueue:
    """A queue of keys for `reconcile`, which is retried with backoff if it raises or returns False."""

    def __init__(self, reconcile: Reconcile, failed: Callable[[Key, Exception], None], first: Key) -> None:
        """Create an empty queue. failed: reports an exception of `reconcile`. first: a key that precedes all others."""
        self._reconcile = reconcile
        self._failed = failed
        self._first = first
        self._waiting: dict[Key, None] = {}  # in order of arrival
        self._some = asyncio.Event()
        self._failures: dict[Key, int] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._busy: set[Key] = set()  # being reconciled

    def add(self, key: Key) -> None:
        """Queue the key, once, now."""
        self._cancel(key)
        self._waiting[key] = None
        self._some.set()

    def add_after(self, key: Key, pause_s: float) -> None:
        """Queue the key after a pause, unless it is added earlier."""
        if key not in self._waiting:
            self._cancel(key)
            self._later[key] = asyncio.get_running_loop().call_later(pause_s, self.add, key)

    def forget(self, key: Key) -> None:
        """Drop the key and its history of failures."""
        self._cancel(key)
        self._waiting.pop(key, None)
        self._failures.pop(key, None)

    @property
    def depth(self) -> int:
        """Return the number of keys that wait or are being reconciled."""
        return len(self._waiting) + len(self._busy)

    @contextlib.asynccontextmanager
    async def alone(self, key: Key) -> AsyncIterator[None]:
        """Hold the key's lock, so that no worker reconciles it meanwhile."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            yield

    async def run(self) -> None:
        """Run the workers until cancelled."""
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
                self._busy.remove(key)  # if it was added again meanwhile, this worker finds it

    async def _next(self) -> Key:
        """Return the first key that no worker has, so that workers do not wait for each other."""
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
            settled = await self._reconcile(key)
        except Exception as error:  # noqa: BLE001 - one object must not stop the work on all others
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
