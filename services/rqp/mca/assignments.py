"""Manage the queues assigned to one connection, as leases in the store (rqp_mca.md 2.3)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from services.kit.session import Wire
from services.rqp.mca.receiver import Receiver
from services.store import Queue, StoreError
from services.store.model import OutcomeUnknown, QueueReserved, QueueUnknown

log = logging.getLogger(__name__)

RENEWALS = 4  # per ttl; one for every message would cost too much


@dataclass(slots=True)
class Assignment:
    """A queue leased for one connection; times are of the loop's clock."""

    queue: Queue
    fence: int
    named: float  # when a message last named it
    renewed: float  # when the lease was last renewed

    @property
    def is_exclusive(self) -> bool:
        """Return True if the queue's current document assigns it to one connection at a time."""
        return self.queue.spec.bindings.rqp_mca.exclusive


class Assignments:
    """The assignments of one connection, by queue.

    Each message that names a queue keeps it for the whole ttl. Renewals are batched: a timer makes up for the messages
    that did not renew the lease themselves.
    """

    __slots__ = ("_held", "_holder", "_receiver", "_timer", "_ttl_s", "_wire", "is_over")

    def __init__(self, receiver: Receiver, wire: Wire, holder: str) -> None:
        self._receiver = receiver
        self._wire = wire
        self._holder = holder
        self._ttl_s = receiver.settings.reservation_ttl_s
        self._held: dict[str, Assignment] = {}  # by the queue's id: a number may move to another queue
        self._timer: asyncio.TimerHandle | None = None
        self.is_over = False  # the connection has closed, or is about to

    async def assign(self, queue: Queue) -> None:
        """Assign the queue to this connection. Raises StoreError if it is not available."""
        domain = self._receiver.service.domain(queue)
        await domain.claims.available(queue, self._holder)
        if not queue.spec.bindings.rqp_mca.exclusive:
            return  # any number of connections may use it
        try:
            fence = await domain.claims.reserve(queue, self._holder, round(self._ttl_s * 1000))
        except OutcomeUnknown:
            if queue.qid not in self._held:  # it may have been reserved, and nothing else would free it
                release = domain.claims.release_reservation(queue, self._holder, fence=0)
                self._receiver.service.background.run(release, lambda _: None)
            raise
        if self.is_over or not queue.spec.bindings.rqp_mca.exclusive:  # by now
            await domain.claims.release_reservation(queue, self._holder, fence)
            return
        now = self._wire.loop_time()
        self._held[queue.qid] = Assignment(queue, fence, now, now)
        self._receiver.on_change.add(self._release_non_exclusive)

    def named(self, queue: Queue) -> None:
        """Keep the queue: a message names it, by the number that it has now."""
        held = self._held.get(queue.qid)
        if held is None or not held.is_exclusive:
            return
        held.named = now = self._wire.loop_time()
        if now - held.renewed >= self._ttl_s / RENEWALS:
            self._renew(held, now)
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._ttl_s / RENEWALS, self._make_up)

    def _make_up(self) -> None:
        """Renew for the rest of the ttl of messages that did not renew the lease themselves."""
        self._timer = None
        for held in self._held.values():
            if held.named > held.renewed and held.is_exclusive:
                self._renew(held, held.named)

    def _renew(self, held: Assignment, since: float) -> None:
        held.renewed = now = self._wire.loop_time()
        left_ms = round((self._ttl_s - (now - since)) * 1000)
        service = self._receiver.service
        work = service.domain(held.queue).claims.reserve(held.queue, self._holder, left_ms)
        service.background.run(work, partial(self._renewed, held))

    def _renewed(self, held: Assignment, outcome: int | StoreError) -> None:
        """Note the outcome. A lease lost to another connection is also detected by the insertion itself."""
        qid = held.queue.qid
        is_held = self._held.get(qid) is held
        if isinstance(outcome, int):
            if qid not in self._held:  # freed before the store renewed it
                self._receiver.service.background.run(self._release(held, outcome), lambda _: None)
            elif is_held:
                held.fence = outcome
        elif is_held and isinstance(outcome, QueueReserved | QueueUnknown):
            del self._held[qid]  # after any other error it may still have to be freed

    def _release_non_exclusive(self) -> None:
        """Release queues whose changed documents no longer ask for exclusive use."""
        for held in self._held.values():
            if not held.is_exclusive:
                work = self._release(held, held.fence)
                self._receiver.service.background.run(work, partial(self._released, held))

    def _released(self, held: Assignment, outcome: bool | StoreError) -> None:
        if self._held.get(held.queue.qid) is held and not isinstance(outcome, StoreError):
            del self._held[held.queue.qid]

    async def free(self) -> None:
        """Release everything, as the connection ends; a lease that cannot be released expires."""
        self.is_over = True
        self._receiver.on_change.discard(self._release_non_exclusive)
        if self._timer is not None:
            self._timer.cancel()
        held, self._held = self._held, {}
        for assignment in held.values():
            try:
                await self._release(assignment, assignment.fence)
            except StoreError as error:
                fields = {"action": "assignment_left", "queue": assignment.queue.name}
                log.info("assignment not released, it will expire: %s", error, extra=fields)

    async def _release(self, held: Assignment, fence: int) -> bool:
        domain = self._receiver.service.domain(held.queue)
        return await domain.claims.release_reservation(held.queue, self._holder, fence)

    def __bool__(self) -> bool:
        return bool(self._held)
