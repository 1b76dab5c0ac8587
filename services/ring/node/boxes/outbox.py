"""Send messages of the group's outbox around the ring as USERs (ring.md 5.5).

One of all nodes that share a store serves the outbox, as long as it renews its claim. It moves messages to its outgoing
queue, settling and storing them in one step, so that each begins once; the relay is notified when they are taken
from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets

from protos.ring import MAX_USER_SENT
from services.ring.node.boxes.bindings import Bindings
from services.ring.node.counts import Counts, UserOutcome
from services.ring.node.outgoing.outgoing import BEGUN, TOO_LARGE, Outgoing
from services.ring.node.outgoing.ownership import Ownership
from services.ring.service import RingService
from services.store import CommitPart, Delivery, Queue, StoreError
from services.store.model import KEEPER, OutcomeUnknown, records
from services.store.pipeline import Answer, AsyncClient

log = logging.getLogger(__name__)

LEASE_MS = 5000
RENEW_S = 1.0
AGAIN_S = 0.25
ROOM_S = 0.005  # between checks whether moved messages have left
MANY = 128  # messages moved in one step
KEEP_MS = 120_000  # how long the store knows a step, which is repeated within 30 s


class Outbox:
    """Moves messages from the bound outbox to the outgoing queue, while this node owns both."""

    def __init__(
        self,
        service: RingService,
        bindings: Bindings,
        ownership: Ownership,
        outgoing: Outgoing,
        counted: Counts,
        max_payload: int = MAX_USER_SENT,
    ) -> None:
        self._service = service
        self._max_payload = max_payload
        self._bindings = bindings
        self._ownership = ownership
        self._outgoing = outgoing
        self._counts = counted
        self._loop = asyncio.get_running_loop()
        self._owner = f"ring outbox {secrets.token_hex(8)}"
        self._changed = asyncio.Event()
        self._renew_at = 0.0
        self._task: asyncio.Task[None] | None = None
        bindings.on_change.append(self._changed.set)

    def start(self) -> None:
        """Start serving the outbox."""
        self._task = asyncio.create_task(self._keep_serving(), name="ring outbox")

    async def close(self) -> None:
        """Stop; leased messages that were not moved return to the outbox."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _keep_serving(self) -> None:
        while True:
            self._changed.clear()
            queue = self._bindings.outbox
            if queue is None:
                await self._changed.wait()
                continue
            try:
                await self._serve(queue)
            except StoreError as error:
                log.debug("outbox not served, retrying: %s", error, extra={"action": "outbox_unserved"})
            except Exception:
                log.exception(
                    "internal error; outbox not served",
                    extra={"action": "job_failed", "job": "ring outbox"},
                )
                self._service.metrics.local_errors.inc()
            await asyncio.sleep(AGAIN_S)

    async def _serve(self, queue: Queue) -> None:
        """Claim the outbox and move its messages while it stays bound and ours. Raises StoreError."""
        domain = self._service.store.open_domain(queue.domain)
        wake = self._service.store.wakes(queue.domain).event(queue)
        fence = await domain.claims.own(queue, self._owner, LEASE_MS)
        if fence is None:
            await asyncio.sleep(RENEW_S)
            return
        # Messages leased by a node that died need not wait for its session to expire.
        await domain.claims.reclaim(queue, fence)
        self._renew_at = self._loop.time() + RENEW_S
        client = AsyncClient(self._service.pipe(queue))
        try:
            while not self._changed.is_set():
                if self._loop.time() >= self._renew_at:
                    self._renew_at = self._loop.time() + RENEW_S
                    if await domain.claims.own(queue, self._owner, LEASE_MS) is None:
                        return
                await self._step(client, queue, wake)
        finally:
            with contextlib.suppress(StoreError):
                await domain.claims.disown(queue, self._owner, fence)

    async def _step(self, client: AsyncClient, queue: Queue, wake: asyncio.Event) -> None:
        goal = self._ownership.queue
        if goal is None or not self._outgoing.is_clear:
            await asyncio.sleep(ROOM_S)
            return
        wake.clear()
        got = await client.take(queue, MANY)
        if got:
            await self._move(client, queue, goal, got)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RENEW_S / 2):
                await wake.wait()

    async def _move(self, client: AsyncClient, queue: Queue, goal: Queue, got: list[Delivery]) -> None:
        """Move messages to the outgoing queue. Raises StoreError after giving back what was not moved."""
        fitting = await _without_too_large(client, got, self._max_payload)
        payloads = [records.decode(record).body for d in fitting for record in d.records()]
        if not payloads:
            return
        leased = [d for d in fitting if not d.settled]
        encoded = [records.encode(payload) for payload in payloads]
        try:
            if queue.domain == goal.domain:
                parts = [CommitPart(queue, leased, [], ""), CommitPart(goal, [], encoded, BEGUN)]
                await self.commit(parts, payloads)
            else:
                await self._copy(client, goal, encoded, leased)
                self._outgoing.poll()
        except StoreError:
            self._outgoing.mistrust()
            if leased:
                self._service.give_back(leased, failed=False)
            raise
        self._counts.now[UserOutcome.BEGUN] += len(payloads)

    async def commit(self, parts: list[CommitPart], payloads: list[bytes]) -> None:
        """Move messages in one step, which also takes them for the successor.

        If the outcome is unknown the step is repeated under the same identifier; it may be done now, behind later
        messages.
        """
        messages = self._outgoing.put(payloads, is_begun=True)
        identifier = f"ring outbox {secrets.token_hex(16)}"
        while True:
            try:
                await self._try_to_commit(identifier, parts, len(payloads))
            except OutcomeUnknown:
                await asyncio.sleep(AGAIN_S)
            else:
                self._outgoing.are_safe(messages)
                return

    async def _try_to_commit(self, identifier: str, parts: list[CommitPart], count: int) -> None:
        answer: Answer[None] = Answer()
        pipe = self._service.pipe(parts[0].queue)
        pipe.idempotent.commit(self._outgoing.putting, identifier, parts, answer.take, KEEP_MS)
        self._outgoing.expect(count)
        await answer

    async def _copy(
        self, client: AsyncClient, goal: Queue, encoded: list[bytes], leased: list[Delivery]
    ) -> None:
        """Copy, then settle, at least once: the outbox is in another domain."""
        keeper = AsyncClient(self._service.pipe(goal), client=KEEPER, begins_traces=False)
        refused = await keeper.publish(goal, encoded, BEGUN)
        if refused:
            raise refused[0][1]
        if leased:
            await client.settle(leased)


async def _without_too_large(client: AsyncClient, got: list[Delivery], most: int) -> list[Delivery]:
    """Turn messages over the limit into dead letters; return the rest, split there."""
    fitting: list[Delivery] = []
    for delivery in got:
        rest: Delivery | None = delivery
        while rest is not None:
            sizes = [len(records.decode(record).body) for record in rest.records()]
            bad = next((i for i, size in enumerate(sizes) if size > most), None)
            if bad is None:
                fitting.append(rest)
                break
            head, tail = rest.cut(bad)
            large, tail = tail.cut(1)
            if head.count:
                fitting.append(head)
            if not large.settled:
                error = f"{sizes[bad]} octets; a USER has at most {most} (edges.ring.node.max_payload)"
                await client.reject([large], TOO_LARGE, error)
            rest = tail if tail.count else None
    return fitting
