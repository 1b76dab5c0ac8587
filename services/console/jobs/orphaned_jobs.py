"""Jobs of consoles that were killed: how much they had moved the store still counts, as nobody heard the last
answer. Whoever notices writes that down, and ends the count; of an emptying that also says up to where it goes."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from services.console.jobs.counted import counted
from services.console.jobs.job import Kind, Told
from services.console.jobs.posting import Posting
from services.store import Store, StoreError
from services.store.model import QueueUnknown

log = logging.getLogger(__name__)

LOOK_S = 15.0
CERTAIN_S = 30.0  # a console that only could not reach the store writes of its jobs long before


class LostJobs:
    def __init__(self, store: Store, posting: Posting) -> None:
        self._store = store
        self._posting = posting
        self._silent: dict[
            tuple[str, int], float
        ] = {}  # id and when it was written (ms): since when we see that

    async def look_for_ever(self) -> None:
        while True:
            try:
                await self._look()
            except StoreError:
                pass
            except Exception as error:  # a fault of ours ends no look
                fields = {"action": "look_fault"}
                log.critical("a look at jobs failed: %r", error, exc_info=True, extra=fields)
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Raises StoreError; then nobody could write, and silence meant nothing."""
        before, self._silent = self._silent, {}
        seen, now = await self._posting.look(), time.monotonic()
        silent = {post: before.get(post, now) for post in self._posting.silent.items()}
        for (identifier, _), since in silent.items():
            if now - since >= CERTAIN_S:
                with suppress(StoreError):  # others do not wait for this one
                    await self.give_up(seen[identifier])
        self._silent = silent

    async def give_up(self, told: Told) -> None:
        """Several consoles may do this at once: who finds no count any more has nothing to say."""
        try:
            queue, _ = await self._store.catalogue.find_leniently(told["queue"])
        except QueueUnknown:  # the count went with it
            return
        found = counted(self._store, told["kind"], queue, told["id"])
        if found is not None and (moved := await found.moved()):
            await self._posting.give_up(told, max(moved, told["moved"]))
            if told["kind"] != Kind.EMPTY:  # one that comes back goes on; it expires by itself
                await found.forget()
