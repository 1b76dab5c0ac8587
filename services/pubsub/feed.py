"""Follow the log for all subscribers and links of the process, and keep it trimmed."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable

from services.pubsub.fanout import Fanout, before
from services.pubsub.recent_entries import RecentEntries
from services.pubsub.subscriber import Subscription
from services.store import StoreError
from services.store.log import Entry, Log, Place, Tail

log = logging.getLogger(__name__)

BACKOFF_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Feed:
    """`trouble`: why the log is not followed now, or None. `watchers` are called whenever it has grown."""

    def __init__(
        self,
        source: Log,
        tail: Tail,
        fanout: Fanout,
        recent: RecentEntries,
        trim_s: float,
        overrun: Callable[[Place], None],
        late: Callable[[Subscription, Place], None],
        moved: Callable[[], None],
    ) -> None:
        """Store the callbacks; `start` begins to follow.

        overrun(place): the log was trimmed between the fanout's place and this one. late(subscription, since): it
        began before the log was followed. moved(): the fanout may have another place.
        """
        self.trouble: StoreError | None = None
        self.watchers: list[Callable[[], None]] = []
        self._log = source
        self._tail = tail
        self._fanout = fanout
        self._recent_entries = recent
        self._trim_s = trim_s
        self._overrun = overrun
        self._late = late
        self._moved = moved
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Follow and trim the log in the background."""
        jobs = {"follow": self._follow(), "trim": self._keep_trimming()}
        self._tasks = [asyncio.create_task(job, name=f"log {name}") for name, job in jobs.items()]

    async def close(self) -> None:
        """Stop following and trimming."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._tail.close()

    async def _follow(self) -> None:
        attempt = 0
        while True:
            try:
                entries = await self._tail.next()
            except StoreError as error:
                self._note(error)
                await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
                attempt += 1
                continue
            attempt = 0
            self._note(None)
            try:
                self._take(entries)
                self._moved()
            except Exception:
                text = "internal error, a batch of messages was not delivered to all subscribers"
                log.exception(text, extra={"action": "fanout_failed"})

    def _note(self, trouble: StoreError | None) -> None:
        if (trouble is None) != (self.trouble is None):
            if trouble is not None:
                text = "cannot follow the log, subscribers get no messages: %s"
                log.warning(text, trouble, extra={"action": "log_away"})
            else:
                log.info("following the log again", extra={"action": "log_there"})
        self.trouble = trouble

    def _take(self, entries: list[Entry]) -> None:
        fanout = self._fanout
        if fanout.place is None:
            assert self._tail.place is not None
            for since, subscription in fanout.begin(before(entries[0]) if entries else self._tail.place):
                self._late(subscription, since)
        assert fanout.place is not None
        assert self._tail.place is not None
        if self._tail.place < fanout.place:  # the store's data went back in time
            self._recent_entries.clear()
            fanout.place = before(entries[0]) if entries else self._tail.place
        if not entries:
            return
        first = before(entries[0])
        if first.serial > fanout.place.serial:
            self._recent_entries.clear()
            self._overrun(first)
        self._recent_entries.add(entries, fanout.place if fanout.place.serial == first.serial else first)
        fanout.deliver(entries)
        for watcher in self.watchers:
            watcher()

    async def _keep_trimming(self) -> None:
        while True:
            await asyncio.sleep(self._trim_s * random.uniform(0.8, 1.2))
            began = time.monotonic()
            try:
                trimmed = await self._log.trim()
            except StoreError as error:
                log.debug("log not trimmed, will retry: %s", error, extra={"action": "trim_failed"})
                continue
            if trimmed:
                fields = {"action": "log_trimmed", "messages": trimmed, "seconds": time.monotonic() - began}
                log.debug("log trimmed", extra=fields)
