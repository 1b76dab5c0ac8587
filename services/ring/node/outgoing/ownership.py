"""Create the outgoing queue, own it in one process at a time, and take it over after a process died.

Two nodes of one name would share the queue: the second waits until the first has released it, takes no part in the ring
meanwhile, and logs that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets

from services.queueing import decode_name
from services.ring.node.outgoing.outgoing import Outgoing
from services.ring.node.outgoing.writer import QueueWriter
from services.ring.service import OWNER, RingService
from services.store import Queue, QueueSpec, StoreError
from services.store.model import PREFIX, QueueExists, QueueUnknown

log = logging.getLogger(__name__)

LEASE_MS = 5000  # how long a restarted node waits for the claim of its killed process
RENEW_S = 1.0
AGAIN_S = 0.25  # while another process owns it, or the store is unavailable
DUPLICATE_S = 2 * LEASE_MS / 1000  # a claim held longer is renewed: its process is alive


def outgoing_name(group: int, node: bytes) -> str:
    """Return the name of a node's outgoing queue, an internal one (docs/store.md); at most 248 octets."""
    return f"{PREFIX}{group}/{decode_name(node)}"


class Ownership:
    """The claim on the outgoing queue: call `start`, and `close` once the links are closed."""

    def __init__(self, service: RingService, name: str, writer: QueueWriter, outgoing: Outgoing) -> None:
        self._service = service
        self._name = name
        self._writer = writer
        self._outgoing = outgoing
        self.owner = f"{name} {secrets.token_hex(4)}"
        self._queue: Queue | None = None
        self._mine: tuple[int, str] | None = None  # fence, session
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.trouble: StoreError | None = None
        # Since when another process owns the queue, in loop time, which stands still while the machine is suspended:
        # that is enough, as the store judges the leases.
        self._owned_elsewhere_since: float | None = None

    @property
    def queue(self) -> Queue | None:
        """The queue while this process owns it."""
        return self._queue if self._mine is not None else None

    @property
    def fence(self) -> int | None:
        """The fencing token under which this process owns the queue."""
        return None if self._mine is None else self._mine[0]

    @property
    def is_owned_elsewhere(self) -> bool:
        """True if another process owns the queue: a former one of this node, or a node of the same name."""
        return self._owned_elsewhere_since is not None

    @property
    def has_duplicate_name(self) -> bool:
        """True if that process is alive, so that it is a node of the same name."""
        since = self._owned_elsewhere_since
        return since is not None and asyncio.get_running_loop().time() - since > DUPLICATE_S

    def start(self) -> None:
        """Start claiming the queue."""
        self._task = asyncio.create_task(self._keep(), name=self._name)

    def lost(self) -> None:
        """Note that the queue was deleted: create it again."""
        self._queue = None
        self._wake.set()

    async def close(self) -> None:
        """Release the queue in order: the next process of this node need not wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._writer.close()
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
                await self._claim()
                self.trouble = None
            except StoreError as error:
                self.trouble = error
                log.debug("%s: %s", self._name, error, extra={"action": "ring_queue_unavailable"})
            except Exception:
                log.exception(
                    "internal error; %s not claimed",
                    self._name,
                    extra={"action": "job_failed", "job": self._name},
                )
                self._service.metrics.local_errors.inc()
            pause_s = RENEW_S if self._mine is not None and self.trouble is None else AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _claim(self) -> None:
        queue = self._queue
        if queue is None:
            self._release()
            queue = self._queue = await self._find_or_make()
            self._writer.use(queue)
        domain = self._service.store.open_domain(queue.domain)
        await domain.pipe.ready()
        session = domain.pipe.session
        try:
            fence = await domain.claims.own(queue, self.owner, LEASE_MS)
        except QueueUnknown:
            self._service.store.catalogue.forget(self._name)
            self._writer.use(None)
            self._release()
            self._queue = None
            raise
        if fence is None:
            self._wait_for_another()
        elif self._mine == (fence, session):
            self._outgoing.poll()
        else:
            await self._begin(queue, fence, session)
        if self._writer.trouble is not None:  # while the links are closed no write shows that it is over
            await domain.claims.available(queue, "")
            self._writer.trouble = None

    async def _begin(self, queue: Queue, fence: int, session: str) -> None:
        """Take over: messages leased by a former owner, this process or another, come first in their order."""
        self._release()
        back = await self._service.store.open_domain(queue.domain).claims.reclaim(queue, fence)
        if back is None:
            return
        self._mine, self._owned_elsewhere_since = (fence, session), None
        log.info(
            "this process sends the messages of the outgoing queue",
            extra={"action": "ring_queue_owned", "queue": queue.name, "reclaimed": back},
        )
        self._outgoing.own(queue)

    def _wait_for_another(self) -> None:
        self._release()
        if self._owned_elsewhere_since is None:
            self._owned_elsewhere_since = asyncio.get_running_loop().time()
            log.warning(
                "another process owns the outgoing queue: a former one of this node, or a node of the same name",
                extra={"action": "ring_queue_anothers", "queue": self._name},
            )

    def _release(self) -> None:
        self._mine = None
        self._outgoing.forget()

    async def _find_or_make(self) -> Queue:
        store = self._service.store
        with contextlib.suppress(QueueUnknown):
            return await store.catalogue.find(self._name)
        # accepted messages must go on: however often delivery fails, they never become dead letters
        spec = QueueSpec(max_deliveries=0)
        with contextlib.suppress(QueueExists):  # another process was faster
            await store.catalogue.declare(self._name, spec, OWNER, internal=True)
        return await store.catalogue.find(self._name)
