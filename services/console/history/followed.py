"""A domain's samples: read in the background while somebody asks, what comes and back from there, the newest first, and
kept for whoever asks next; never more than so many.

Where a thousand queues are busy two hundred come a second, and a hundred thousand may stand there: no answer waits for
all of them. It is made of what is read by then, and says whether that was all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict, deque

from services.console.history.series import Flow, Kept, parse
from services.console.history.totals import Totals
from services.store import StoreError
from services.store.model import StoreFault
from services.store.upkeep import SampleReader, StoredSample

log = logging.getLogger(__name__)

MOST_MINUTES = 1440
MOST_KEPT = 200_000  # samples of a domain, some 60 MB
FORGOTTEN_S = 600.0  # after the last question they are followed, and kept, for so long
PIECE = 100  # samples in a row, some 3 ms: others have their turn then
POLL_S = 1.0  # what came meanwhile is little enough for the next answer
UNREAD_MS = 1 << 62  # nothing is known yet of any time
WAIT_S = 0.015  # that an answer waits for the long way back


class Followed:
    """`follow` for as long as anybody asks."""

    def __init__(self, following: SampleReader) -> None:
        self.totals = Totals(MOST_MINUTES * 60_000)
        self._know_from(UNREAD_MS)
        self._following = following
        self._kept: dict[str, deque[Kept]] = defaultdict(deque)
        self._order: deque[str] = deque()  # whose the samples are, the oldest first
        # (process, queue) -> serials of the first and the last look of which it was told
        self._told: dict[tuple[str, str], tuple[int, int]] = {}
        self._asked = time.monotonic()
        self._read = float("-inf")  # what had come by then is read
        self._is_whole = False  # also what was there when it began
        self._trouble: StoreError | None = None  # why it cannot be read
        self._wanted = asyncio.Event()
        self._turned = asyncio.Event()  # set, and replaced, whenever something was read

    # for who asks

    async def catch_up(self) -> bool:
        """Whether all is read; what is not after WAIT_S is for the next question. Raises StoreError."""
        asked = self._asked = time.monotonic()
        self._wanted.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S if self._is_whole else WAIT_S):  # only the newest may lack
                while not self._has_all(asked):
                    await self._turned.wait()
                    if self._trouble is not None:
                        raise self._trouble
        return self._has_all(asked)

    def _has_all(self, asked: float) -> bool:
        return self._is_whole and self._read >= asked

    @property
    def behind_ms(self) -> float:
        """Of what came in the last so many ms perhaps not all is read."""
        return max(time.monotonic() - self._read, 0.0) * 1000

    def of(self, name: str) -> list[Kept]:
        return list(self._kept.get(name, ()))

    # reading

    async def follow(self) -> None:
        """Until nobody has asked for FORGOTTEN_S, or after a fault of ours: whoever asks then has to begin anew."""
        while time.monotonic() - self._asked <= FORGOTTEN_S:
            self._wanted.clear()
            began, is_behind = time.monotonic(), False
            try:
                is_behind = await self.read_on()
                self._trouble = None
            except StoreError as error:  # who asks is told
                self._trouble = error
            except Exception as error:  # who asks next begins anew: what was read of a piece nobody knows
                fields = {"action": "history_fault"}
                log.critical("samples cannot be followed: %r", error, exc_info=error, extra=fields)
                self._trouble = StoreFault("a fault of our own: the log says more")
                self._tell()
                return
            self._tell()
            await self._rest(time.monotonic() - began, is_behind)

    def _tell(self) -> None:
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def _rest(self, took: float, is_behind: bool) -> None:
        """As long as it has worked, while there is more to read; else until somebody asks."""
        if is_behind:
            await asyncio.sleep(took)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._wanted.wait()

    async def read_on(self) -> bool:
        """One piece; whether there is more. What comes goes before what was. Raises StoreError."""
        began = time.monotonic()
        page = await self._following.next(PIECE)
        for sample in page:
            self._keep(sample)
        if len(page) == PIECE:
            return True
        self._read = began
        if not self._is_whole:
            await self._read_back()
        return not self._is_whole

    async def _read_back(self) -> None:
        page = await self._following.earlier(PIECE)
        for sample in page:
            self._keep_earlier(sample)
        if page:
            self._know_from(page[-1].at_ms)
        self._is_whole = len(page) < PIECE
        if self._is_whole and self.known_ms == UNREAD_MS:
            self._know_from(0)

    def _know_from(self, at_ms: int) -> None:
        """0: nobody has told anything."""
        self.known_ms = self.totals.known_ms = at_ms

    def _keep(self, sample: StoredSample) -> None:
        if self.known_ms in (0, UNREAD_MS):
            self._know_from(sample.at_ms)
        found = self._new(sample)
        if found is None:
            return
        name, kept = found
        self._kept[name].append(kept)
        self._order.append(name)
        if len(self._order) > MOST_KEPT:
            self._drop_oldest()

    def _keep_earlier(self, sample: StoredSample) -> None:
        found = self._new(sample)
        if found is None:
            return
        name, kept = found
        self._kept[name].appendleft(kept)
        self._order.appendleft(name)

    def _new(self, sample: StoredSample) -> tuple[str, Kept] | None:
        """Whose it is, and what is kept of it; None if it is of something else, or was told before."""
        found = parse(sample)
        if found is None or self._is_repeat(sample):
            return None
        if isinstance(found[1], Flow):
            self.totals.add(found[1])
        return found

    def _drop_oldest(self) -> None:
        name = self._order.popleft()
        kept = self._kept[name]
        self.known_ms = max(self.known_ms, kept.popleft().at_ms)
        self._is_whole = True  # there is no room for what was before
        if not kept:
            del self._kept[name]

    def _is_repeat(self, sample: StoredSample) -> bool:
        """A sample whose answer was lost is written again. What is read comes before all that was, or behind it."""
        told = sample.fields
        process = told.get("process")
        if process is None:
            return False
        key, text = (process, told.get("queue", "")), told.get("n", "")
        if not text.isdigit():
            return False
        serial = int(text)
        first, last = self._told.get(key, (serial, serial - 1))
        if len(self._told) > MOST_KEPT:
            self._told.clear()
        self._told[key] = (min(first, serial), max(last, serial))
        return first <= serial <= last
