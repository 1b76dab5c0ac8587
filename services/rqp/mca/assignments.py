"""Queues that are assigned to one connection: leases in the store (rqp_mca.md 2.3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from services.kit.session import Wire
from services.rqp.mca.receiver import Receiver
from services.store import Queue, StoreError, StoreUnavailable
from services.store.errors import OutcomeUnknown

RENEWALS = 4  # within the ttl: a store call for every message would cost too much


@dataclass(slots=True)
class Assignment:
    queue: Queue
    fence: int
    named: float  # when a message last named it
    renewed: float  # when the lease was last prolonged


class Assignments:
    """Only messages that name a queue keep it, each for the whole ttl: what is not renewed at once is made up for."""

    __slots__ = ("_held", "_holder", "_receiver", "_timer", "_ttl_s", "_wire", "is_over")

    def __init__(self, receiver: Receiver, wire: Wire, holder: str) -> None:
        self._receiver = receiver
        self._wire = wire
        self._holder = holder
        self._ttl_s = receiver.settings.reservation_ttl_s
        self._held: dict[int, Assignment] = {}  # by number
        self._timer: asyncio.TimerHandle | None = None
        self.is_over = False  # the connection has gone, or is about to

    async def assign(self, number: int, queue: Queue) -> None:
        """Raises StoreError if it is not available to this connection."""
        domain = self._receiver.service.domain(queue)
        await domain.available(queue, self._holder)
        if not queue.spec.bindings.rqp_mca.exclusive:
            return  # many hold it at once
        fence = await domain.reserve(queue, self._holder, round(self._ttl_s * 1000))
        if self.is_over:
            await domain.release_reservation(queue, self._holder, fence)
            return
        now = self._wire.loop_time()
        self._held[number] = Assignment(queue, fence, now, now)

    def named(self, number: int) -> None:
        """A message names this queue."""
        held = self._held.get(number)
        if held is None:
            return
        held.named = now = self._wire.loop_time()
        if now - held.renewed >= self._ttl_s / RENEWALS:
            self._renew(number, held, now)
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._ttl_s / RENEWALS, self._make_up)

    def _make_up(self) -> None:
        """For the messages that renewed nothing, the rest of their ttl."""
        self._timer = None
        for number, held in self._held.items():
            if held.named > held.renewed:
                self._renew(number, held, held.named)

    def _renew(self, number: int, held: Assignment, since: float) -> None:
        held.renewed = now = self._wire.loop_time()
        left_ms = round((self._ttl_s - (now - since)) * 1000)
        service = self._receiver.service
        work = service.domain(held.queue).reserve(held.queue, self._holder, left_ms)
        service.errands.ask(work, partial(self._renewed, number, held))

    def _renewed(self, number: int, held: Assignment, outcome: int | StoreError) -> None:
        """What has run out and is another's now is found out by the step that inserts, too."""
        if isinstance(outcome, StoreUnavailable | OutcomeUnknown):
            return
        if self._held.get(number) is not held:
            return  # freed meanwhile
        if isinstance(outcome, StoreError):
            del self._held[number]
        else:
            held.fence = outcome

    async def free(self) -> None:
        """The connection ends: they are free for others when this returns, or run out."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        held, self._held = self._held, {}
        domain = self._receiver.service.domain
        for one in held.values():
            await domain(one.queue).release_reservation(one.queue, self._holder, one.fence)

    def __bool__(self) -> bool:
        return bool(self._held)
