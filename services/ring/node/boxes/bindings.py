"""Follow which queues are bound as the group's inbox and outbox (ring.md 5.5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from services.ring.service import RingService
from services.store import Queue, StoreError
from services.store.model import INBOX, OUTBOX, QueueUnknown

log = logging.getLogger(__name__)

POLL_S = 10.0  # in case a notification is lost
AGAIN_S = 0.5


class Bindings:
    """The bound queues, kept up to date after `start`; None: no queue is bound."""

    def __init__(self, service: RingService, group: int) -> None:
        self.inbox: Queue | None = None
        self.outbox: Queue | None = None
        self.is_known = False  # read at least once
        self.on_change: list[Callable[[], None]] = []
        self._service = service
        self._group = group
        self._stale = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """Start following the catalogue."""
        self._stop = self._service.store.catalogue.watch(lambda _name: self.refresh())
        self._task = asyncio.create_task(self._follow(), name=f"bindings of ring group {self._group}")

    def refresh(self) -> None:
        """Read the bindings again: they may have changed."""
        self._stale.set()

    async def close(self) -> None:
        """Stop following."""
        if self._stop is not None:
            self._stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _follow(self) -> None:
        while True:
            self._stale.clear()
            pause_s = POLL_S
            try:
                await self._read()
            except StoreError as error:
                log.debug(
                    "inbox and outbox bindings not read: %s",
                    error,
                    extra={"action": "bindings_unread"},
                )
                pause_s = AGAIN_S
            except Exception:
                log.exception(
                    "internal error; inbox and outbox bindings not read",
                    extra={"action": "job_failed", "job": "bindings"},
                )
                self._service.metrics.local_errors.inc()
                pause_s = AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stale.wait()

    async def _read(self) -> None:
        inbox, outbox = await self._bound(INBOX), await self._bound(OUTBOX)
        if self.is_known and (inbox, outbox) == (self.inbox, self.outbox):
            return
        self.inbox, self.outbox, self.is_known = inbox, outbox, True
        for callback in self.on_change:
            callback()

    async def _bound(self, kind: str) -> Queue | None:
        try:
            return await self._service.store.catalogue.numbered(kind, self._group)
        except QueueUnknown:
            return None
