"""Transmission queues: each has one process that owns it, and there one agent that sends what it holds.

Ownership is a lease in the store. Whoever cannot renew it stops when two thirds of it are over, before anybody else can
have it; then the agent lets go of everything at once. When a queue is paused, changed or deleted, or this process
drains, what is out may still be confirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from services.rqp.condition import Condition
from services.rqp.jobs import start_job, stop_job
from services.rqp.service import RqpService
from services.store import Queue, StoreError
from services.store.model import now

log = logging.getLogger(__name__)

AGAIN_S = 0.5  # a store that did not answer is asked again after this long
SAFE_PART = 2 / 3  # of the lease, counted from the question: what may be used of it


class SendingAgent(Protocol):
    """What carries the messages of one queue. Made when the queue is owned; `close` is its end."""

    async def close(self, *, lost: bool) -> None:
        """lost: the queue may be another's any moment, so nothing more may leave, and nothing is waited for.

        May be cancelled, and is called once more then, as if it were lost.
        """


MakeAgent = Callable[[Queue, Condition], SendingAgent]  # begins to send at once


class Outbox:
    """The queues whose `spec.remote` names this protocol."""

    def __init__(self, service: RqpService, protocol: str, make: MakeAgent) -> None:
        self._service = service
        self._protocol = protocol
        self._make = make
        self._stale = asyncio.Event()
        self._holdings: dict[str, Ownership] = {}  # by the queue's id
        self._ending: dict[str, asyncio.Task[None]] = {}  # the last one of each queue that was let go
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._service.store.catalogue.watch(self._told)
        self._task = start_job(self._follow, f"{self._protocol} queues", self._service.metrics)

    async def close(self) -> None:
        """In order: what is out may still be confirmed, then everything is given back. Cancelled, it is so at once."""
        await stop_job(self._task)
        for qid in list(self._holdings):
            self._let_go(qid)
        ending = tuple(self._ending.values())
        try:
            if ending:
                await asyncio.wait(ending)
        except asyncio.CancelledError:
            for task in ending:
                task.cancel()
            raise

    def _told(self, _name: str) -> None:
        """A queue's name: whether it is one of ours, the store knows best."""
        self._stale.set()

    async def _follow(self) -> None:
        while True:
            self._stale.clear()
            pause_s = self._service.settings.outbox.look_s
            try:
                self._take_over(await self._service.store.catalogue.remotes())
            except StoreError as error:
                log.debug("no remote queues: %s", error, extra={"action": "remotes_unread"})
                pause_s = AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stale.wait()

    def _take_over(self, queues: list[Queue]) -> None:
        """Holdings for all queues that are ours to send now, and for no others."""
        wanted = {queue.qid: queue for queue in queues if self._is_wanted(queue)}
        for qid, holding in list(self._holdings.items()):
            queue = wanted.get(qid)
            if queue is None or queue.spec.remote != holding.remote:
                self._let_go(qid)
        for qid, queue in wanted.items():
            if qid not in self._holdings:
                before = self._ending.get(qid)
                self._holdings[qid] = Ownership(self._service, queue, self._protocol, self._make, before)

    def _is_wanted(self, queue: Queue) -> bool:
        remote = queue.spec.remote
        return remote is not None and remote.protocol == self._protocol and not queue.spec.paused

    def _let_go(self, qid: str) -> None:
        """Ends in its own time; another holding of the same queue waits for that."""
        task = asyncio.ensure_future(self._holdings.pop(qid).close())
        self._ending[qid] = task
        task.add_done_callback(partial(self._ended, qid))

    def _ended(self, qid: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(qid) is task:
            del self._ending[qid]


class Ownership:
    """One queue: waits until this process owns it, has its messages sent while it does, and waits again."""

    def __init__(
        self,
        service: RqpService,
        queue: Queue,
        protocol: str,
        make: MakeAgent,
        before: asyncio.Task[None] | None,
    ) -> None:
        """before: the end of an earlier holding of this queue."""
        self.remote = queue.spec.remote
        self._service = service
        self._queue = queue
        self._protocol = protocol
        self._make = make
        self._before = before
        self._owner = f"{service.name} {id(self):x}"  # two holdings of one process are not the same owner
        self._owned = service.owned.labels(service.metrics.edge, protocol)
        self._task = start_job(self._run, f"{protocol} {queue.name!r}", service.metrics)

    async def close(self) -> None:
        """Ends in order; cancelled, at once."""
        try:
            await stop_job(self._task)
        except asyncio.CancelledError:
            await stop_job(self._task)  # again: see `_end`

    async def _run(self) -> None:
        if self._before is not None:
            await asyncio.wait((self._before,))
        while True:
            began = self._now()
            fence = await self._own()
            if fence is None:
                await asyncio.sleep(self._service.settings.outbox.renew_s)
                continue
            await self._send(fence, began)

    async def _send(self, fence: int, began: float) -> None:
        """As long as the queue is ours."""
        queue = self._queue
        fields = {"queue": queue.name, "protocol": self._protocol}
        log.info("this process sends what is put into the queue", extra={"action": "rqp_owned", **fields})
        condition = Condition(self._service, queue, self._protocol, fence)
        sending = self._make(queue, condition)
        self._owned.inc()
        lost = False
        try:
            await self._keep(fence, began)
            lost = True
            log.warning("another process may send it from now on", extra={"action": "rqp_lost", **fields})
        finally:
            await self._end(sending, lost)
            await condition.close(lost=lost)
            if not lost:
                await self._disown(fence)
            self._owned.dec()

    @staticmethod
    async def _end(sending: SendingAgent, lost: bool) -> None:
        """Cancelled, it waits for nothing more."""
        try:
            await sending.close(lost=lost)
        except asyncio.CancelledError:
            await sending.close(lost=True)

    async def _keep(self, fence: int, began: float) -> None:
        """Renews; returns once the queue is not surely ours any more."""
        settings = self._service.settings.outbox
        end = began + SAFE_PART * settings.lease_s
        pause_s = settings.renew_s
        while (left_s := end - self._now()) > 0:
            await asyncio.sleep(min(pause_s, left_s))
            asked = self._now()
            try:
                async with asyncio.timeout(
                    max(end - asked, 0.0) / 2
                ):  # the other half is for another connection
                    found = await self._ask()
            except (StoreError, TimeoutError) as error:
                log.debug("not renewed: %s", error, extra={"action": "rqp_not_renewed"})
                pause_s = min(AGAIN_S, (end - self._now()) / 4)
                continue
            if found != fence:
                return
            end, pause_s = asked + SAFE_PART * settings.lease_s, settings.renew_s

    async def _own(self) -> int | None:
        try:
            return await self._ask()
        except StoreError as error:
            log.debug("not owned: %s", error, extra={"action": "rqp_not_owned"})
            return None

    async def _ask(self) -> int | None:
        ttl_ms = round(self._service.settings.outbox.lease_s * 1000)
        return await self._service.domain(self._queue).claims.own(self._queue, self._owner, ttl_ms)

    async def _disown(self, fence: int) -> None:
        with contextlib.suppress(StoreError):  # then it runs out of itself
            await self._service.domain(self._queue).claims.disown(self._queue, self._owner, fence)

    @staticmethod
    def _now() -> float:
        return now()  # a lease runs out while the machine is suspended
