"""The queue of what waits for the successor: made, owned by one process at a time, and taken over after a death.

Two nodes of one name would share it; the second waits until the first has let go, takes no part in the ring meanwhile,
and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets

from services.ring.node.outgoing.outgoing import Outgoing
from services.ring.node.outgoing.storing import Storing
from services.ring.service import OWNER, RingService
from services.store import Queue, QueueSpec, StoreError
from services.store.model import QueueExists, QueueUnknown

log = logging.getLogger(__name__)

LEASE_MS = 5000  # so long a node that was killed keeps its next life waiting
RENEW_S = 1.0
AGAIN_S = 0.25  # while it is another's, or the store away
NAMESAKE_S = 2 * LEASE_MS / 1000  # whoever has had it for longer lives


class Ownership:
    """`start`, and `close` once the links are gone."""

    def __init__(self, service: RingService, name: str, storing: Storing, outgoing: Outgoing) -> None:
        self._service = service
        self._name = name
        self._storing = storing
        self._outgoing = outgoing
        self.owner = f"{name} {secrets.token_hex(4)}"
        self._queue: Queue | None = None
        self._mine: tuple[int, str] | None = None  # fence, session
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.trouble: StoreError | None = None
        # A node of this name lives, or lived until just now. Loop time: nothing is seen while the machine is suspended,
        # and no lease is judged by it, for the store does that.
        self._anothers_since: float | None = None

    @property
    def queue(self) -> Queue | None:
        """The queue while it is ours."""
        return self._queue if self._mine is not None else None

    @property
    def fence(self) -> int | None:
        """The fencing token under which this process owns the queue."""
        return None if self._mine is None else self._mine[0]

    @property
    def is_anothers(self) -> bool:
        """Whether another process sends what is in it: this node's last life, or a node of the same name."""
        return self._anothers_since is not None

    @property
    def has_namesake(self) -> bool:
        """Whether that is no last life."""
        since = self._anothers_since
        return since is not None and asyncio.get_running_loop().time() - since > NAMESAKE_S

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name=self._name)

    def lost(self) -> None:
        """The queue is not there any more."""
        self._queue = None
        self._wake.set()

    async def close(self) -> None:
        """Everything is let go in order: the next life of this node need not wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._storing.close()
        self._outgoing.close()
        if self._queue is not None and self._mine is not None:
            fence, self._mine = self._mine[0], None
            with contextlib.suppress(StoreError):
                domain = self._service.store.open_domain(self._queue.domain)
                await domain.claims.disown(self._queue, self.owner, fence)

    async def _keep(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look()
                self.trouble = None
            except StoreError as error:
                self.trouble = error
                log.debug("%s: %s", self._name, error, extra={"action": "ring_queue_unavailable"})
            except Exception:
                log.exception("%s failed", self._name, extra={"action": "job_failed", "job": self._name})
                self._service.metrics.local_errors.inc()
            pause_s = RENEW_S if self._mine is not None and self.trouble is None else AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _look(self) -> None:
        queue = self._queue
        if queue is None:
            self._let_go()
            queue = self._queue = await self._find_or_make()
            self._storing.use(queue)
        domain = self._service.store.open_domain(queue.domain)
        await domain.pipe.ready()
        session = domain.pipe.session
        try:
            fence = await domain.claims.own(queue, self.owner, LEASE_MS)
        except QueueUnknown:
            self._service.store.catalogue.forget(self._name)
            self._storing.use(None)
            self._let_go()
            self._queue = None
            raise
        if fence is None:
            self._wait_for_another()
        elif self._mine == (fence, session):
            self._outgoing.look()
        else:
            await self._begin(queue, fence, session)
        if (
            self._storing.trouble is not None
        ):  # while the links are closed nobody else finds out that it is over
            await domain.claims.available(queue, "")
            self._storing.trouble = None

    async def _begin(self, queue: Queue, fence: int, session: str) -> None:
        """What a former life, this process's or another's, had leased comes first, in its old order."""
        self._let_go()
        back = await self._service.store.open_domain(queue.domain).claims.reclaim(queue, fence)
        if back is None:
            return
        self._mine, self._anothers_since = (fence, session), None
        log.info(
            "this process sends what is in the queue",
            extra={"action": "ring_queue_owned", "queue": queue.name, "reclaimed": back},
        )
        self._outgoing.own(queue)

    def _wait_for_another(self) -> None:
        self._let_go()
        if self._anothers_since is None:
            self._anothers_since = asyncio.get_running_loop().time()
            log.warning(
                "another process sends what is in the queue: this node's last life, or a node of the same name",
                extra={"action": "ring_queue_anothers", "queue": self._name},
            )

    def _let_go(self) -> None:
        self._mine = None
        self._outgoing.forget()

    async def _find_or_make(self) -> Queue:
        store = self._service.store
        with contextlib.suppress(QueueUnknown):
            return await store.catalogue.find(self._name)
        # what waits here was promised to go on: however often it fails, it is never a dead letter
        spec = QueueSpec(max_deliveries=0)
        with contextlib.suppress(QueueExists):  # another one was faster
            await store.catalogue.declare(self._name, spec, OWNER, internal=True)
        return await store.catalogue.find(self._name)
