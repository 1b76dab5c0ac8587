"""Read a domain's samples in the background while there are requests: new ones, then older ones, newest first.

With a thousand busy queues there are two hundred samples a second, and a hundred thousand in the store, so responses do
not wait for all of them. They use what has been read, and say whether it is complete. The number kept is limited.
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

MAX_MINUTES = 1440
MAX_KEPT = 200_000  # samples of a domain, some 60 MB
KEPT_S = 600.0  # after the last request
BATCH = 100  # samples, some 3 ms, before yielding to other tasks
POLL_S = 1.0
UNREAD_MS = 1 << 62  # nothing has been read
WAIT_S = 0.015  # of a response for older samples


class SampleHistory:
    """The samples of a domain. Run `follow` in a task."""

    def __init__(self, reader: SampleReader) -> None:
        self.totals = Totals(MAX_MINUTES * 60_000)
        self._know_from(UNREAD_MS)
        self._reader = reader
        self._kept: dict[str, deque[Kept]] = defaultdict(deque)
        self._order: deque[str] = deque()  # queues of the samples, oldest first
        # (process, queue) -> first and last serial read
        self._serials: dict[tuple[str, str], tuple[int, int]] = {}
        self._requested_at = time.monotonic()
        self._read_until = float("-inf")  # samples written by then have been read
        self._is_complete = False  # all older samples have been read
        self._error: StoreError | None = None  # of the last read
        self._requested = asyncio.Event()
        self._advanced = asyncio.Event()  # set, and replaced, after each read

    # for requests

    async def catch_up(self) -> bool:
        """Wait for samples up to now, for at most WAIT_S for older ones; return whether all have been read.

        Raises StoreError.
        """
        requested_at = self._requested_at = time.monotonic()
        self._requested.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S if self._is_complete else WAIT_S):
                while not self._has_all(requested_at):
                    await self._advanced.wait()
                    if self._error is not None:
                        raise self._error
        return self._has_all(requested_at)

    def _has_all(self, at: float) -> bool:
        return self._is_complete and self._read_until >= at

    @property
    def behind_ms(self) -> float:
        """Return the ms since the last complete read; samples written since may be missing."""
        return max(time.monotonic() - self._read_until, 0.0) * 1000

    def of(self, name: str) -> list[Kept]:
        """Return the samples of a queue."""
        return list(self._kept.get(name, ()))

    # reading

    async def follow(self) -> None:
        """Read until there was no request for KEPT_S, or after an internal error; then create a new reader."""
        while time.monotonic() - self._requested_at <= KEPT_S:
            self._requested.clear()
            began, is_behind = time.monotonic(), False
            try:
                is_behind = await self.read_on()
                self._error = None
            except StoreError as error:  # raised by catch_up()
                self._error = error
            except Exception as error:  # the batch may have been processed in part
                fields = {"action": "history_fault"}
                log.critical(
                    "reading of samples stopped: internal error: %r", error, exc_info=error, extra=fields
                )
                self._error = StoreFault("internal error: see the console's log")
                self._notify()
                return
            self._notify()
            await self._rest(time.monotonic() - began, is_behind)

    def _notify(self) -> None:
        advanced, self._advanced = self._advanced, asyncio.Event()
        advanced.set()

    async def _rest(self, took: float, is_behind: bool) -> None:
        """Sleep as long as the read took, if there is more to read; else until a request, for at most POLL_S."""
        if is_behind:
            await asyncio.sleep(took)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._requested.wait()

    async def read_on(self) -> bool:
        """Read a batch, new samples first, and return whether there are more. Raises StoreError."""
        began = time.monotonic()
        page = await self._reader.next(BATCH)
        for sample in page:
            self._keep(sample)
        if len(page) == BATCH:
            return True
        self._read_until = began
        if not self._is_complete:
            await self._read_back()
        return not self._is_complete

    async def _read_back(self) -> None:
        page = await self._reader.earlier(BATCH)
        for sample in page:
            self._keep_earlier(sample)
        if page:
            self._know_from(page[-1].at_ms)
        self._is_complete = len(page) < BATCH
        if self._is_complete and self.known_ms == UNREAD_MS:
            self._know_from(0)

    def _know_from(self, at_ms: int) -> None:
        """Set the time before which nothing is known; 0: there are no samples."""
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
        if len(self._order) > MAX_KEPT:
            self._drop_oldest()

    def _keep_earlier(self, sample: StoredSample) -> None:
        found = self._new(sample)
        if found is None:
            return
        name, kept = found
        self._kept[name].appendleft(kept)
        self._order.appendleft(name)

    def _new(self, sample: StoredSample) -> tuple[str, Kept] | None:
        """Return the queue and the parsed sample; None for a sample of another kind, and for a repetition."""
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
        self._is_complete = True  # there is no room for older samples
        if not kept:
            del self._kept[name]

    def _is_repeat(self, sample: StoredSample) -> bool:
        """Return whether the sample was read before: one whose response was lost is written again.

        Serials read so far are contiguous, as samples are read in both directions from the middle.
        """
        fields = sample.fields
        process = fields.get("process")
        if process is None:
            return False
        key, text = (process, fields.get("queue", "")), fields.get("n", "")
        if not text.isdigit():
            return False
        serial = int(text)
        first, last = self._serials.get(key, (serial, serial - 1))
        if len(self._serials) > MAX_KEPT:
            self._serials.clear()
        self._serials[key] = (min(first, serial), max(last, serial))
        return first <= serial <= last
