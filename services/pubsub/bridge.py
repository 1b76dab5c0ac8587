"""SENDs on their way to the log, with a copy for each queue that subscribes to their tag (pubsub.md 5.1).

Which queues subscribe is known here by a version; the store refuses a send that was made by another one. Then the
table is read again, and what was refused is asked anew, everything in the order in which it came.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from services.pubsub.bindings import NO_COPIES, Bindings, Copies
from services.store import Source, StoreError, StoreUnavailable
from services.store.errors import BindingsChanged, OutcomeUnknown
from services.store.log import NO_SUBSCRIPTIONS, Log
from services.store.operations import Published, Refusals, Send

log = logging.getLogger(__name__)

AGAIN_S = 0.1
PATIENCE_S = 2.0  # how long sends wait for a table that cannot be read


@dataclass(slots=True)
class Run:
    """What one client sent in one go; its parts are answered one by one."""

    source: Source
    origin: str
    done: Published
    unanswered: int  # lines
    refusals: Refusals = field(default_factory=list)

    def answered(self, first: int, count: int, error: StoreError | None) -> None:
        """Lines `first` and so on have their outcome."""
        self.unanswered -= count
        if isinstance(error, OutcomeUnknown):
            self.unanswered = -1  # whatever the others say: the whole run has no answer
            self.done(error)
        elif error is not None:
            self.refusals += [(index, error) for index in range(first, first + count)]
        if self.unanswered == 0:
            self.done(self.refusals)


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a run that wait for the table."""

    run: Run
    first: int
    count: int
    block: bytes


class Bridge:
    def __init__(self, target: Log) -> None:
        self.bindings = Bindings(NO_SUBSCRIPTIONS)
        self._log = target
        self._refused: list[Part] = []  # to be asked anew
        self._held_back: list[Part] = []  # came meanwhile: behind those, whichever are still under way
        self._held_bytes = 0  # of lines that came meanwhile
        self._resumes: list[Callable[[], None]] = []  # of those that wait for them to be gone
        self._under_way = 0  # parts that the store has not answered
        self._all_back = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._is_open = False

    async def open(self) -> None:
        """What came before waits until now: neither table nor promise of the log were known. Raises StoreError."""
        await self._read()
        self._is_open = True
        self._ask_again()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self.refuse_waiting(StoreUnavailable("this process is stopping"))

    def send(self, source: Source, block: bytes, count: int, origin: str, done: Published) -> None:
        """`count` lines `SEND tag message`; done([]) once all are stored with all their copies.

        Else done([(index, why), ...]) of those that were refused whole, or done(OutcomeUnknown).
        """
        self._send(Part(Run(source, origin, done, count), 0, count, block))

    def _send(self, part: Part) -> None:
        if self._is_open and self._reading is None:
            self._submit(part)
        else:
            self._held_back.append(part)
            self._held_bytes += len(part.block)

    # how much

    @property
    def congested(self) -> bool:
        """Too much waits, here or for the store: whoever sends should read no more before there is room."""
        waiting = self._log.domain.pipe.waiting
        return waiting.congested or self._held_bytes > waiting.max_bytes

    def when_clear(self, resume: Callable[[], None]) -> None:
        """Calls back once, when there is room again."""
        waiting = self._log.domain.pipe.waiting
        if waiting.congested:
            waiting.when_clear(resume)
        else:
            self._resumes.append(resume)

    # to the store

    def _submit(self, part: Part) -> None:
        if not self.bindings:
            self._ask(part, part.block, part.count, part.first, NO_COPIES)
            return
        first = part.first
        for block, count, copies in self.bindings.split(part.block):
            self._ask(part, block, count, first, copies)
            first += count

    def _ask(self, part: Part, block: bytes, count: int, first: int, copies: Copies) -> None:
        run = part.run
        self._under_way += 1
        done = partial(self._answered, Part(run, first, count, block))
        self._log.send(run.source, Send(block, count, copies, run.origin, self.bindings.version, done))

    def _answered(self, part: Part, error: StoreError | None) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._all_back.set()
        if isinstance(error, BindingsChanged):
            self._refused.append(part)
            self._begin_reading()
        elif part.run.unanswered > 0:
            part.run.answered(part.first, part.count, error)

    # the table

    def _begin_reading(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.create_task(self._ask_anew(), name="queues that subscribe")
        return self._reading

    async def renew(self) -> None:
        """Reads the table again for somebody else who was told that it is old; SENDs keep their order meanwhile."""
        await asyncio.wait((self._begin_reading(),))

    async def _ask_anew(self) -> None:
        """Everything that was asked by the old table is back before anything is asked by the new one: order stays."""
        try:
            await self._read()
        except StoreError as error:
            self.refuse_waiting(error)
        while self._under_way:
            self._all_back.clear()
            await self._all_back.wait()
        self._reading = None
        self._ask_again()

    def _ask_again(self) -> None:
        for part in self._take_waiting():
            self._send(part)
        self._resume()

    def _take_waiting(self) -> list[Part]:
        """The refused ones first: they came before those that were held back."""
        waiting = self._refused + self._held_back
        self._refused, self._held_back, self._held_bytes = [], [], 0
        return waiting

    def _resume(self) -> None:
        resumes, self._resumes = self._resumes, []
        for resume in resumes:
            resume()

    async def _read(self) -> None:
        """The table as it is now. Raises StoreError after some time of trying."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.bindings = Bindings(await self._log.subscriptions())
            except StoreError as error:
                log.info(
                    "the queues that subscribe cannot be read: %s", error, extra={"action": "bindings_unread"}
                )
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return

    def refuse_waiting(self, error: StoreError) -> None:
        """None of it was stored."""
        for part in self._take_waiting():
            part.run.answered(part.first, part.count, error)
        self._resume()
