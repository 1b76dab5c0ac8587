"""Leases messages of a transmission queue ahead of need, and keeps them in line."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from services.rqp.jobs import end, job
from services.rqp.mca.line import Line
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import Remote, records
from services.store.pipeline import Answer

log = logging.getLogger(__name__)

LEAST_AHEAD = 64  # messages; what the store gives in one call costs it about as much as one
MOST_AHEAD = 1_000
MAX_BYTES = 4 << 20  # of bodies in line
AGAIN_S = 0.5
EXPIRY_S = 1.0  # how often it is looked for what is over its time to live
CLOCK_ERROR_MS = 100  # what went back too early would only be given out again
TAKE_S = 5.0
SWEEPS = 3  # until the dead have surely been swept: processes take turns
TOO_LARGE = "too_large_for_peers"  # of dead letters: the limit was lowered after they were put in


class Machine(Protocol):
    """Who is fed."""

    def put(self, is_certain: bool, count: int) -> None:
        """So many more are in line, all of one kind."""

    def is_blocked(self) -> bool:
        """What was sent is not read: no more for now."""

    def ahead(self) -> int:
        """How many messages it can make use of."""

    def expire(self, before_ms: int) -> None:
        """What was put in at that time of the store's or before, and is not out, goes back."""


class Feed:
    """`line` is what is leased and not done."""

    def __init__(self, service: RqpService, queue: Queue, remote: Remote, machine: Machine) -> None:
        self.line = Line(remote)
        self._service = service
        self._queue = queue
        self._max_message_bytes = remote.max_message_bytes
        self._machine = machine
        self._room = asyncio.Event()
        self._source = Source(INTERNAL_CLIENT)
        self._patience_s = 0.0  # for a take that is under way when all is to end
        self._task = job(self._fill, f"messages of {queue.name!r}", service.metrics)
        self._expiry = job(self._keep_expiring, f"expiry of {queue.name!r}", service.metrics)

    def has_room(self) -> None:
        """Perhaps: messages are done, or the peer reads."""
        self._room.set()

    async def stop(self, *, lost: bool) -> None:
        """Nothing is taken any more; what still comes goes back.

        A take that is under way is waited for, unless the queue is another's already: if it came to be done after the
        next owner's first, that one would have what comes later before what comes first.
        """
        self._patience_s = 0.0 if lost else TAKE_S
        await end(self._expiry)
        await end(self._task)

    async def _fill(self) -> None:
        wake = self._service.store.wakes(self._queue.domain).event(self._queue)
        await self._until_nothing_is_leased()
        while True:
            want = self._wanted()
            if want == 0:
                self._room.clear()
                await self._room.wait()
                continue
            wake.clear()
            try:
                got, more = await self.take(want)
            except StoreError as error:
                log.debug("nothing taken: %s", error, extra={"action": "rqp_take_failed"})
                await asyncio.sleep(AGAIN_S)
                continue
            self._put(got)
            if not got and not more:
                await wake.wait()

    async def _until_nothing_is_leased(self) -> None:
        """What an earlier owner had taken stands before everything else: it is back once that one has been swept.

        Somebody may take messages out of the queue who is no owner at all: he is waited for no longer than that.
        """
        loop = asyncio.get_running_loop()
        waits = self._service.settings.store
        swept_s = (
            self._queue.spec.visibility_timeout / 1000 + waits.session_timeout_s + SWEEPS * waits.sweep_s
        )
        end = loop.time() + swept_s
        while not self.line and loop.time() < end:
            try:
                if (await self._service.store.listing.stats(self._queue))["in_flight"] == 0:
                    return
            except StoreError as error:
                log.debug("not known what is leased: %s", error, extra={"action": "rqp_stats_failed"})
            await asyncio.sleep(min(AGAIN_S, waits.sweep_s))

    async def _keep_expiring(self) -> None:
        """What is leased and not sent expires as if it were not leased: the store buries it once it is back."""
        clock = self._service.pipe(self._queue).clock
        while True:
            await asyncio.sleep(EXPIRY_S)
            ttl_ms = self._queue.spec.message_ttl
            if ttl_ms and self.line:
                self._machine.expire(round(clock.now_ms()) - ttl_ms - CLOCK_ERROR_MS)

    def _wanted(self) -> int:
        """0 while there is enough: half of it is worth a question."""
        ahead = min(max(self._machine.ahead(), LEAST_AHEAD), MOST_AHEAD)
        if self._machine.is_blocked() or self.line.bytes >= MAX_BYTES or 2 * len(self.line) > ahead:
            return 0
        return ahead - len(self.line)

    def _put(self, got: list[Delivery]) -> None:
        before = len(self.line)
        for delivery in got:
            self._admit(delivery)
        for is_certain, count in self.line.runs(before):
            self._machine.put(is_certain, count)

    def _admit(self, delivery: Delivery) -> None:
        """What no peer would take must not stand first for ever. Only bodies count: nothing else is sent (3.1)."""
        if delivery.body_bytes <= self._max_message_bytes:  # of all of them, attributes and all
            self.line.append(delivery)
            return
        while True:
            fits = _fitting(delivery, self._max_message_bytes)
            head, rest = delivery.cut(fits)
            if head.count:
                self.line.append(head)
            if not rest.count:
                return
            large, delivery = rest.cut(1)
            error = f"{records.body_length(large.blob)} octets, peers take {self._max_message_bytes}"
            self._service.pipe(self._queue).messages.reject(
                Source(INTERNAL_CLIENT), [large], TOO_LARGE, error
            )

    async def take(self, want: int) -> tuple[list[Delivery], bool]:
        """A lease whatever the queue's mode is: the machine says when messages are done. Raises StoreError."""
        pipe = self._service.pipe(self._queue)

        def unwanted(taken: tuple[list[Delivery], bool]) -> None:
            if taken[0]:
                pipe.messages.give_back(taken[0])

        answer: Answer[tuple[list[Delivery], bool]] = Answer(unwanted)

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            answer.take(got if isinstance(got, StoreError) else (got, more))

        pipe.messages.take(self._source, self._queue, want, taken, leased=True)
        try:
            await asyncio.wait((answer,))
        except asyncio.CancelledError:
            await asyncio.wait((answer,), timeout=self._patience_s)
            if not answer.cancel():
                answer.forget()
            raise
        return answer.result()


def _fitting(delivery: Delivery, octets: int) -> int:
    """How many messages, from the first on, are not larger, attributes aside."""
    for index, record in enumerate(delivery.records()):
        if records.body_length(record) > octets:
            return index
    return delivery.count
