"""Bring up the rest once the store's server runs: set up the store, declare queues, wait for the edges."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from services.cli.documents import declaring
from services.cli.documents.declaring import Change
from services.cli.documents.documents import Declaration
from services.cli.framework.command import open_store
from services.cli.local.child_log import STARTED, ChildLog
from services.cli.local.child_process import EdgeProcess
from services.cli.local.own_store import OwnStore
from services.cli.terminal.failures import failure_for
from services.kit.workers import watched_signals
from services.store import StoreError
from services.store.model import OutcomeUnknown, Promises, StoreUnavailable

log = logging.getLogger(__name__)
T = TypeVar("T")

CHECKED = "checked"  # the store is set up and has its data
READY = "ready"  # everything serves and has been announced
BACK_AGAIN_S = 30.0  # how long to wait for the restart of a store that died
RETRY_S = 0.2


@dataclass(slots=True)
class BringUp:
    """The task that brings up the system. Steps done are in `log` and not repeated after a restart of the store."""

    own: OwnStore | None
    url: str
    declarations: list[Declaration]
    announce: Callable[[Promises, Sequence[Change]], None]
    processes: Sequence[EdgeProcess]  # they start once `log` has STARTED
    log: ChildLog = field(default_factory=ChildLog)

    def work(self) -> int:
        """Run as a child process; return the exit status."""
        os.setsid()  # Ctrl-C is for `up`, which sends SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a terminated task must not look like a finished one
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched_signals())
        try:
            if self.log.has(READY):
                self._check_again()
            else:
                self._bring_up()
        except Exception as error:
            log.debug("bring-up failed", exc_info=error)
            return self.log.fail(failure_for(error))
        return 0

    def _check_again(self) -> None:
        """Check the store after its restart; end a server that cannot be set up, for another restart."""
        try:
            asyncio.run(self._check())
        except (StoreError, OSError) as error:
            log.error(
                "the store's setup failed; restarting it: %s", error, extra={"action": "store_start_failed"}
            )
            assert self.own is not None
            self.own.end_server()

    def _bring_up(self) -> None:
        promises = asyncio.run(self._set_up())
        for process in self.processes:
            process.await_ready()
        declared = self.log.events(STARTED)[-1]
        self.announce(promises, [Change(change) for change in declared["changes"]])
        self.log.add({"action": READY})

    async def _set_up(self) -> Promises:
        promises = await self._patiently(self._check)
        self.log.add({"action": CHECKED})
        if not self.log.has(STARTED):
            self.log.add({"action": STARTED, "changes": await self._declare()})
        return promises

    async def _check(self) -> Promises:
        if self.own is not None:
            return await self.own.check()
        store = open_store(self.url)
        try:
            await store.registry.epoch()
            return await store.promises.now()
        finally:
            await store.close()

    async def _declare(self) -> list[Change]:
        """Declare the documents and return the changes. A retry keeps the plan, which would else be "unchanged"."""
        if not self.declarations:
            return []
        store = open_store(self.url)
        try:
            changes = await self._patiently(lambda: declaring.plan(store, self.declarations))
            await self._patiently(lambda: declaring.carry_out(store, self.declarations, changes))
        finally:
            await store.close()
        return changes

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Retry the work while a store that `penstock up` runs is restarted."""
        give_up = time.monotonic() + (BACK_AGAIN_S if self.own is not None else 0.0)
        while True:
            try:
                return await work()
            except (StoreUnavailable, OutcomeUnknown):
                if time.monotonic() > give_up:
                    raise
            await asyncio.sleep(RETRY_S)
