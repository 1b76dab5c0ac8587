"""Lease messages of a transmission queue ahead of need, in order."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from services.rqp.jobs import start_job, stop_job
from services.rqp.mca.leased_messages import LeasedMessages
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import Remote, records
from services.store.pipeline import Answer

log = logging.getLogger(__name__)

LEAST_AHEAD = 64  # messages; one call to the store costs about the same for one as for many
MOST_AHEAD = 1_000
MAX_BYTES = 4 << 20  # of leased bodies
AGAIN_S = 0.5
EXPIRY_S = 1.0  # how often to look for expired messages
CLOCK_ERROR_MS = 100  # a message returned too early would only be leased again
TAKE_S = 5.0
SWEEPS = 3  # until leases of dead processes have surely been swept: processes take turns
TOO_LARGE = "too_large_for_peers"  # of dead letters: the limit was lowered after they were put in


class PrefetchClient(Protocol):
    """The sender of the leased messages."""

    def put(self, is_certain: bool, count: int) -> None:
        """Send `count` more leased messages, all of one kind."""

    def is_blocked(self) -> bool:
        """Return whether a peer does not read what it was sent, so that no more should be leased."""

    def ahead(self) -> int:
        """Return how many leased messages it can use."""

    def expire(self, before_ms: int) -> None:
        """Give back messages put in at that time of the store's clock or before, except those in flight."""


class Prefetch:
    """`leased`: messages leased and not yet settled."""

    def __init__(self, service: RqpService, queue: Queue, remote: Remote, client: PrefetchClient) -> None:
        self.leased = LeasedMessages(remote)
        self._service = service
        self._queue = queue
        self._max_message_bytes = remote.max_message_bytes
        self._client = client
        self._room = asyncio.Event()
        self._source = Source(INTERNAL_CLIENT)
        self._patience_s = 0.0  # how long to wait for a running take when the prefetch stops
        self._task = start_job(self._fill, f"messages of {queue.name!r}", service.metrics)
        self._expiry = start_job(self._keep_expiring, f"expiry of {queue.name!r}", service.metrics)

    def has_room(self) -> None:
        """Check for room again: messages were settled, or a peer reads again."""
        self._room.set()

    async def stop(self, *, lost: bool) -> None:
        """Stop leasing; messages that still arrive are given back.

        Waits for a running take unless the ownership is lost: if it were executed after the next owner's first take,
        that owner would get later messages before earlier ones.
        """
        self._patience_s = 0.0 if lost else TAKE_S
        await stop_job(self._expiry)
        await stop_job(self._task)

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
                log.debug("no messages leased, will retry: %s", error, extra={"action": "rqp_take_failed"})
                await asyncio.sleep(AGAIN_S)
                continue
            self._put(got)
            if not got and not more:
                await wake.wait()

    async def _until_nothing_is_leased(self) -> None:
        """Wait for messages that an earlier owner had leased: they come first, and are back once it was swept.

        Clients that are no owners may hold leases, too, so the wait is bounded by the time a sweep takes.
        """
        loop = asyncio.get_running_loop()
        timeouts = self._service.settings.store
        swept_s = (
            self._queue.spec.visibility_timeout / 1000
            + timeouts.session_timeout_s
            + SWEEPS * timeouts.sweep_s
        )
        end = loop.time() + swept_s
        while not self.leased and loop.time() < end:
            try:
                if (await self._service.store.listing.stats(self._queue))["in_flight"] == 0:
                    return
            except StoreError as error:
                text = "cannot tell whether messages are leased, will retry: %s"
                log.debug(text, error, extra={"action": "rqp_stats_failed"})
            await asyncio.sleep(min(AGAIN_S, timeouts.sweep_s))

    async def _keep_expiring(self) -> None:
        """Give back expired messages that are not in flight; the store then dead-letters them."""
        clock = self._service.pipe(self._queue).clock
        while True:
            await asyncio.sleep(EXPIRY_S)
            ttl_ms = self._queue.spec.message_ttl
            if ttl_ms and self.leased:
                self._client.expire(round(clock.now_ms()) - ttl_ms - CLOCK_ERROR_MS)

    def _wanted(self) -> int:
        """Return how many messages to lease; 0 while more than half of the target is leased."""
        ahead = min(max(self._client.ahead(), LEAST_AHEAD), MOST_AHEAD)
        if self._client.is_blocked() or self.leased.bytes >= MAX_BYTES or 2 * len(self.leased) > ahead:
            return 0
        return ahead - len(self.leased)

    def _put(self, got: list[Delivery]) -> None:
        before = len(self.leased)
        for delivery in got:
            self._admit(delivery)
        for is_certain, count in self.leased.runs(before):
            self._client.put(is_certain, count)

    def _admit(self, delivery: Delivery) -> None:
        """Keep messages; reject those too large for any peer, by their bodies alone: attributes are not sent (3.1)."""
        if delivery.body_bytes <= self._max_message_bytes:  # all of them together, with attributes
            self.leased.append(delivery)
            return
        while True:
            fits = _fitting(delivery, self._max_message_bytes)
            head, rest = delivery.cut(fits)
            if head.count:
                self.leased.append(head)
            if not rest.count:
                return
            large, delivery = rest.cut(1)
            error = f"{records.body_length(large.blob)} octets; peers accept {self._max_message_bytes}"
            self._service.pipe(self._queue).messages.reject(
                Source(INTERNAL_CLIENT), [large], TOO_LARGE, error
            )

    async def take(self, want: int) -> tuple[list[Delivery], bool]:
        """Lease messages in any mode of the queue. Return them and whether there may be more. Raises StoreError."""
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
    """Return how many messages, from the first on, have bodies of at most so many octets."""
    for index, record in enumerate(delivery.records()):
        if records.body_length(record) > octets:
            return index
    return delivery.count
