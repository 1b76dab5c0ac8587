"""Run one sending agent for each transmission queue that this process owns.

Ownership is a lease in the store. A process that cannot renew it stops after two thirds of the lease, before another
process can obtain it; its agent then drops everything at once. When a queue is paused, changed or deleted, or this
process drains, messages in flight may still be confirmed.
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
from services.store.model import now  # goes on while the machine is suspended, as leases do

log = logging.getLogger(__name__)

AGAIN_S = 0.5  # pause after the store did not respond
SAFE_PART = 2 / 3  # of the lease, counted from the request: how much of it may be used


class SendingAgent(Protocol):
    """Sends the messages of one queue, from its creation until `close`."""

    async def close(self, *, lost: bool) -> None:
        """Stop sending. lost: another process may own the queue at any moment; send nothing and wait for nothing.

        May be cancelled, and is then called once more with lost=True.
        """


MakeAgent = Callable[[Queue, Condition], SendingAgent]


class Outbox:
    """The queues whose `spec.remote` names one protocol."""

    def __init__(self, service: RqpService, protocol: str, make: MakeAgent) -> None:
        self._service = service
        self._protocol = protocol
        self._make = make
        self._stale = asyncio.Event()
        self._ownerships: dict[str, Ownership] = {}  # by the queue's id
        self._ending: dict[str, asyncio.Task[None]] = {}  # the last ended ownership of each queue
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take over queues from now on."""
        self._service.store.catalogue.watch(lambda _name: self._stale.set())
        self._task = start_job(self._follow, f"{self._protocol} queues", self._service.metrics)

    async def close(self) -> None:
        """Wait for confirmations of messages in flight, then give everything back; cancelled, do so at once."""
        await stop_job(self._task)
        for qid in list(self._ownerships):
            self._end(qid)
        ending = tuple(self._ending.values())
        try:
            if ending:
                await asyncio.wait(ending)
        except asyncio.CancelledError:
            for task in ending:
                task.cancel()
            raise

    async def _follow(self) -> None:
        while True:
            self._stale.clear()
            pause_s = self._service.settings.outbox.look_s
            try:
                self._update(await self._service.store.catalogue.remotes())
            except StoreError as error:
                text = "cannot list transmission queues, will retry: %s"
                log.debug(text, error, extra={"action": "remotes_unread"})
                pause_s = AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stale.wait()

    def _update(self, queues: list[Queue]) -> None:
        """Start an ownership for each queue to be sent now, and end all others."""
        wanted = {
            queue.qid: queue
            for queue in queues
            if (remote := queue.spec.remote) and remote.protocol == self._protocol and not queue.spec.paused
        }
        for qid, ownership in list(self._ownerships.items()):
            queue = wanted.get(qid)
            if queue is None or queue.spec.remote != ownership.remote:
                self._end(qid)
        for qid, queue in wanted.items():
            if qid not in self._ownerships:
                before = self._ending.get(qid)
                self._ownerships[qid] = Ownership(self._service, queue, self._protocol, self._make, before)

    def _end(self, qid: str) -> None:
        """End an ownership in the background; the next one of the same queue waits for that."""
        task = asyncio.ensure_future(self._ownerships.pop(qid).close())
        self._ending[qid] = task
        task.add_done_callback(partial(self._ended, qid))

    def _ended(self, qid: str, task: asyncio.Task[None]) -> None:
        if self._ending.get(qid) is task:
            del self._ending[qid]


class Ownership:
    """One queue: waits until this process owns it, runs its agent while it does, and waits again."""

    def __init__(
        self,
        service: RqpService,
        queue: Queue,
        protocol: str,
        make: MakeAgent,
        before: asyncio.Task[None] | None,
    ) -> None:
        """before: the ending of an earlier ownership of this queue."""
        self.remote = queue.spec.remote
        self._service = service
        self._queue = queue
        self._protocol = protocol
        self._make = make
        self._before = before
        self._owner = f"{service.name} {id(self):x}"  # two ownerships of one process are different owners
        self._owned = service.owned.labels(service.metrics.edge, protocol)
        self._task = start_job(self._run, f"{protocol} {queue.name!r}", service.metrics)

    async def close(self) -> None:
        """End the ownership after confirmations of messages in flight; cancelled, at once."""
        try:
            await stop_job(self._task)
        except asyncio.CancelledError:
            await stop_job(self._task)  # again: see `_close_agent`

    async def _run(self) -> None:
        if self._before is not None:
            await asyncio.wait((self._before,))
        while True:
            began = now()
            try:
                fence = await self._claim()
            except StoreError as error:
                log.debug("queue not owned, will retry: %s", error, extra={"action": "rqp_not_owned"})
                fence = None
            if fence is None:
                await asyncio.sleep(self._service.settings.outbox.renew_s)
            else:
                await self._send(fence, began)

    async def _send(self, fence: int, began: float) -> None:
        """Run the agent until the ownership is lost."""
        queue = self._queue
        fields = {"queue": queue.name, "protocol": self._protocol}
        log.info("this process now sends the queue's messages", extra={"action": "rqp_owned", **fields})
        condition = Condition(self._service, queue, self._protocol, fence)
        agent = self._make(queue, condition)
        self._owned.inc()
        lost = False
        try:
            await self._keep(fence, began)
            lost = True
            text = "ownership lost; another process may send the queue's messages from now on"
            log.warning(text, extra={"action": "rqp_lost", **fields})
        finally:
            await self._close_agent(agent, lost)
            await condition.close(lost=lost)
            if not lost:
                with contextlib.suppress(StoreError):  # then the lease expires
                    await self._service.domain(queue).claims.disown(queue, self._owner, fence)
            self._owned.dec()

    @staticmethod
    async def _close_agent(agent: SendingAgent, lost: bool) -> None:
        """Close the agent; cancelled, wait for nothing more."""
        try:
            await agent.close(lost=lost)
        except asyncio.CancelledError:
            await agent.close(lost=True)

    async def _keep(self, fence: int, began: float) -> None:
        """Renew the lease; return once it is no longer certain that this process owns the queue."""
        settings = self._service.settings.outbox
        end = began + SAFE_PART * settings.lease_s
        pause_s = settings.renew_s
        while (left_s := end - now()) > 0:
            await asyncio.sleep(min(pause_s, left_s))
            asked = now()
            try:
                # half of the time left: the other half is for a retry over another connection
                async with asyncio.timeout(max(end - asked, 0.0) / 2):
                    found = await self._claim()
            except (StoreError, TimeoutError) as error:
                text = "ownership not renewed, will retry: %s"
                log.debug(text, error, extra={"action": "rqp_not_renewed"})
                pause_s = min(AGAIN_S, (end - now()) / 4)
                continue
            if found != fence:
                return
            end, pause_s = asked + SAFE_PART * settings.lease_s, settings.renew_s

    async def _claim(self) -> int | None:
        """Obtain or renew the lease. Return its fencing token, None if another process has it."""
        ttl_ms = round(self._service.settings.outbox.lease_s * 1000)
        return await self._service.domain(self._queue).claims.own(self._queue, self._owner, ttl_ms)
