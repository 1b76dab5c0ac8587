"""Put SENDs into the log, with a copy for each queue that subscribes to their tag (pubsub.md 5.1).

Each send carries the version of the subscriptions it was made with; the store refuses an outdated one. The table is
then read again, and refused sends are repeated, all in the order in which they came.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from services.pubsub.bindings import NO_COPIES, Bindings, Copies
from services.pubsub.fair_queue import FairQueue, SendPart, SendRun
from services.pubsub.render import runs
from services.store import Source, StoreError, StoreUnavailable
from services.store.log import NO_SUBSCRIPTIONS, Log
from services.store.model import BindingsChanged, Published, Send

log = logging.getLogger(__name__)

AGAIN_S = 0.1
PATIENCE_S = 2.0  # how long sends wait for a table that cannot be read
MAX_WAITING = 100_000  # waiting lines; beyond it their clients are not read
MAX_UNDER_WAY = 2_000  # copies that the store has not answered
SLICE = 32  # lines processed for one client before the next one's turn
TURN_SLICES = 8  # slices before other work of this process gets a turn
STOPPING = StoreUnavailable("this process is stopping")


class Bridge:
    """The way of all SENDs of a process into the log, in order for each client."""

    def __init__(self, target: Log) -> None:
        self.bindings = Bindings(NO_SUBSCRIPTIONS)
        self._log = target
        self._refused: list[SendPart] = []  # to be repeated, before those that wait
        self.waiting = FairQueue()  # parts that wait for their copies or the table
        self._resumes: list[Callable[[], None]] = []  # of clients that wait for room
        self._copied = 0  # copies that the store has not answered
        self._pumps = False  # `_pump` is running or scheduled
        self._closed = False
        self._under_way = 0  # parts that the store has not answered
        self._all_back = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._is_open = False

    async def open(self) -> None:
        """Read the table and send what waits; earlier SENDs wait for this. Raises StoreError."""
        await self._read()
        self._is_open = True
        self._ask_again()

    async def close(self) -> None:
        """Refuse all waiting SENDs."""
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self.refuse_waiting(STOPPING)

    def send(self, source: Source, block: bytes, count: int, origin: str, done: Published) -> None:
        """Store `count` lines `SEND tag message`. Calls done([]) once all are stored with all their copies.

        Otherwise calls done([(index, error), ...]) with the refused lines, or done(OutcomeUnknown).
        """
        self._send(SendPart(SendRun(source, origin, done, count), 0, count, block))

    def _send(self, part: SendPart) -> None:
        if self._may_ask() and not self.waiting.has(part.run.source) and not self._wants_copies(part):
            self._ask(part, NO_COPIES)
            return
        self.waiting.append(part)
        self._pump()

    def _may_ask(self) -> bool:
        return self._is_open and self._reading is None

    def _wants_copies(self, part: SendPart) -> bool:
        return bool(self.bindings) and any(self.bindings.queues(tag) for tag, _ in runs(part.block))

    # back-pressure

    def is_congested(self, source: Source) -> bool:
        """Return whether the client should not be read: too much waits for the store, or here with some of it its."""
        return self._log.domain.pipe.waiting.congested or (self.waiting.has(source) and self._has_too_much())

    def _has_too_much(self) -> bool:
        most = self._log.domain.pipe.waiting.max_bytes
        return self.waiting.lines > MAX_WAITING or self.waiting.bytes > most

    def when_clear(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when there is room again."""
        waiting = self._log.domain.pipe.waiting
        if waiting.congested:
            waiting.when_clear(resume)
        else:
            self._resumes.append(resume)

    # to the store

    def _pump(self) -> None:
        """Send some of what waits."""
        if self._pumps:
            return
        self._pumps = True  # the store may answer, and so call this, before it returns
        try:
            for _ in range(TURN_SLICES):
                if self._may_go_on():
                    self._submit(self.waiting.take(SLICE if self.bindings else MAX_WAITING))
        finally:  # a callback may raise: the other clients are served all the same
            self._pumps = self._may_go_on()
            if self._pumps:
                asyncio.get_running_loop().call_soon(self._pump_again)
        self._resume_if_clear()

    def _may_go_on(self) -> bool:
        return bool(self.waiting) and self._may_ask() and self._copied < MAX_UNDER_WAY

    def _pump_again(self) -> None:
        self._pumps = False
        self._pump()

    def _submit(self, part: SendPart) -> None:
        first = part.first
        for block, count, copies in self.bindings.split(part.block):
            self._ask(SendPart(part.run, first, count, block), copies)
            first += count

    def _ask(self, part: SendPart, copies: Copies) -> None:
        run = part.run
        self._under_way += 1
        self._copied += len(copies)
        done = partial(self._answered, part, len(copies))
        self._log.send(
            run.source, Send(part.block, part.count, copies, run.origin, self.bindings.version, done)
        )

    def _answered(self, part: SendPart, copies: int, error: StoreError | None) -> None:
        self._under_way -= 1
        self._copied -= copies
        if not self._under_way:
            self._all_back.set()
        if isinstance(error, BindingsChanged) and self._closed:
            error = STOPPING
        if isinstance(error, BindingsChanged):
            self._refused.append(part)
            self._begin_reading()
        elif part.run.unanswered > 0:
            part.run.answered(part.first, part.count, error)
        if self._resumes or (self.waiting and self._copied <= MAX_UNDER_WAY // 2):
            self._pump()

    # the table

    def _begin_reading(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.create_task(self._ask_anew(), name="queues that subscribe")
        return self._reading

    async def renew(self) -> None:
        """Read the table again, as the store refused an outdated version; SENDs keep their order meanwhile."""
        await asyncio.wait((self._begin_reading(),))

    async def _ask_anew(self) -> None:
        """Read the table; repeat sends once all those made with the old table are answered, to keep the order."""
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
        """Repeat refused sends, before those that wait."""
        refused, self._refused = self._refused, []
        self.waiting.put_back(refused)
        self._pump()
        self._resume_if_clear()

    def _resume_if_clear(self) -> None:
        if self._resumes and not self._has_too_much():
            resumes, self._resumes = self._resumes, []
            try:
                while resumes:
                    resumes.pop(0)()
            finally:
                self._resumes += resumes

    async def _read(self) -> None:
        """Read the table. Raises StoreError after PATIENCE_S."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.bindings = Bindings(await self._log.subscriptions())
            except StoreError as error:
                text = "cannot read which queues subscribe, SENDs wait: %s"
                log.info(text, error, extra={"action": "bindings_unread"})
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return

    def refuse_waiting(self, error: StoreError) -> None:
        """Refuse all waiting SENDs; none of them was stored."""
        waiting = self._refused + self.waiting.take_all()
        self._refused = []
        for part in waiting:
            part.run.answered(part.first, part.count, error)
        self._resume_if_clear()
