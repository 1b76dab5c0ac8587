"""Write messages for the successor to the outgoing queue: they are safe only there (ring.md 2.2, 4.5)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from services.ring.node.outgoing.outgoing import AGAIN_S, BEGUN, Outgoing
from services.ring.node.outgoing.stored_message import StoredMessage
from services.ring.service import RingService
from services.store import Queue, StoreError
from services.store.model import QueueUnknown, Refusals, records

log = logging.getLogger(__name__)

PATIENCE_S = 10.0  # the predecessor gives up earlier: an `A` has to come within 5 s (4.5)
RUN = 256  # records in one operation
RUN_BYTES = 256 << 10


@dataclass(slots=True)
class Put:
    """Payloads to store together. `done` gets True once they are stored, False if they were given up."""

    serial: int
    payloads: list[bytes]
    origin: str
    done: Callable[[bool], None]
    until: float  # loop time


class QueueWriter:
    """Writes in the order of the calls, unless the store refuses something."""

    def __init__(self, service: RingService, outgoing: Outgoing, lost: Callable[[], None]) -> None:
        """outgoing: announces the messages, which the same call takes. lost: called when the queue was deleted."""
        self.trouble: StoreError | None = None  # why the last write was refused
        self._service = service
        self._outgoing = outgoing
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._queue: Queue | None = None
        self._puts: deque[Put] = deque()
        self._serial = 0
        self._scheduled = False
        self._retry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many puts wait, without those under way."""
        return len(self._puts)

    def use(self, queue: Queue | None) -> None:
        """Use this queue from now on. None: puts wait for a queue."""
        self._queue = queue
        self._soon()

    def put(
        self,
        payloads: list[bytes],
        origin: str,
        done: Callable[[bool], None],
        patience_s: float | None = None,
    ) -> None:
        """Store payloads. `done` is never called before this returns."""
        self._serial += 1
        until = self._loop.time() + (PATIENCE_S if patience_s is None else patience_s)
        self._puts.append(Put(self._serial, payloads, origin, done, until))
        self._soon()

    def close(self) -> None:
        """Stop: what is not stored by now was not answered, so the predecessor sends it again."""
        self._queue = None
        if self._retry is not None:
            self._retry.cancel()

    def _soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._store)

    def _store(self) -> None:
        self._scheduled = False
        while self._puts and self._retry is None:
            queue = self._queue
            if queue is None:
                self._wait()
                return
            run, payloads = self._next_run()
            try:
                self._put_in(queue, run, payloads)
            except Exception:
                log.exception(
                    "internal error; messages not stored",
                    extra={"action": "job_failed", "job": "ring storing"},
                )
                self._failed(run)

    def _put_in(self, queue: Queue, run: list[Put], payloads: list[bytes]) -> None:
        origin = run[0].origin
        encoded = [records.encode(payload) for payload in payloads]
        messages = self._outgoing.put(payloads, origin == BEGUN)
        stored = partial(self._stored, run, messages)
        self._service.pipe(queue).messages.publish(self._outgoing.putting, queue, encoded, origin, stored)
        self._outgoing.expect(len(payloads))

    def _failed(self, run: list[Put]) -> None:
        """Give up these puts after an internal error, so that later ones are still stored."""
        self._service.metrics.local_errors.inc()
        self._outgoing.mistrust()
        puts, run[:] = run[:], []  # a late result of the store finds none
        for put in puts:
            put.done(False)

    def _next_run(self) -> tuple[list[Put], list[bytes]]:
        """Return the next puts of one origin, as many as fit into one operation."""
        puts = self._puts
        run, payloads, size = [puts.popleft()], list[bytes](), 0
        payloads += run[0].payloads
        size = sum(map(len, payloads))
        while puts and puts[0].origin == run[0].origin and len(payloads) < RUN and size < RUN_BYTES:
            run.append(puts.popleft())
            payloads += run[-1].payloads
            size += sum(map(len, run[-1].payloads))
        return run, payloads

    def _stored(self, run: list[Put], messages: list[StoredMessage], refused: Refusals | StoreError) -> None:
        if refused == []:
            self.trouble = None
            self._outgoing.are_safe(messages)
            for put in run:
                put.done(True)
            return
        if isinstance(refused, StoreError):
            self._refused(run, refused)
            return
        missing, first = {index for index, _ in refused}, 0
        for put in run:
            count = len(put.payloads)
            put.payloads = [p for index, p in enumerate(put.payloads, first) if index in missing]
            first += count
            if not put.payloads:
                put.done(True)
        self._refused([put for put in run if put.payloads], refused[0][1])

    def _refused(self, run: list[Put], error: StoreError) -> None:
        """Retry in the old order, until the puts' time is up."""
        self._outgoing.mistrust()
        self.trouble = error
        if isinstance(error, QueueUnknown):
            self._queue = None
            self._lost()
        self._puts = deque(sorted([*run, *self._puts], key=lambda put: put.serial))
        self._wait()

    def _wait(self) -> None:
        if self._retry is None:
            self._retry = self._loop.call_later(AGAIN_S, self._again)

    def _again(self) -> None:
        self._retry = None
        now = self._loop.time()
        over = [put for put in self._puts if put.until < now]
        if over:
            self._puts = deque(put for put in self._puts if put.until >= now)
            for put in over:
                put.done(False)
        self._store()
