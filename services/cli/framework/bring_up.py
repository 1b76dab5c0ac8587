"""The way from a store whose server runs to edges that serve: the work of a task of `penstock up`."""

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
from services.cli.documents.documents import Wanted
from services.cli.framework.command import open_store
from services.cli.local.child_log import STARTED, ChildLog
from services.cli.local.child_process import EdgeProcess
from services.cli.local.own_store import OwnStore
from services.cli.terminal.failures import failure_for
from services.kit.workers import watched_signals
from services.store import StoreError
from services.store.model import OutcomeUnknown, StoreUnavailable
from services.store.redis import Promises

log = logging.getLogger(__name__)
T = TypeVar("T")

CHECKED = "checked"  # the store has its data
READY = "ready"  # everything serves, and that was said
BACK_AGAIN_S = 30.0  # how long to wait for a store that died
AGAIN_S = 0.2


@dataclass(slots=True)
class BringUp:
    """What it has done is in `log`, so that it does not do that again after a restart of the store."""

    own: OwnStore | None
    url: str
    wanted: list[Wanted]
    announce: Callable[[Promises, Sequence[Change]], None]
    processes: Sequence[EdgeProcess]  # begin when `log` has STARTED
    log: ChildLog = field(default_factory=ChildLog)

    def work(self) -> int:
        """Run as a task; returns the exit status."""
        os.setsid()  # Ctrl-C is for `up`, which sends SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # so that its status is not that of work that is done
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
        """A server that cannot be set up is ended: it is started again."""
        try:
            asyncio.run(self._check())
        except (StoreError, OSError) as error:
            log.error("the store could not be started: %s", error, extra={"action": "store_start_failed"})
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
        """Planned once: what was made before a break is new all the same."""
        if not self.wanted:
            return []
        store = open_store(self.url)
        try:
            changes = await self._patiently(lambda: declaring.plan(store, self.wanted))
            await self._patiently(lambda: declaring.carry_out(store, self.wanted, changes))
        finally:
            await store.close()
        return changes

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do this work again where a store of our own is killed meanwhile: it comes back."""
        give_up = time.monotonic() + (BACK_AGAIN_S if self.own is not None else 0.0)
        while True:
            try:
                return await work()
            except (StoreUnavailable, OutcomeUnknown):
                if time.monotonic() > give_up:
                    raise
            await asyncio.sleep(AGAIN_S)
