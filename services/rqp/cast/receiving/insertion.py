"""Reserve queues, insert messages and write dead letters for receiving sessions (rqp_cast.md 3.2, 5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from protos.rqp_cast import BuryReceived, Insert, Insertion, encode_record, fingerprint, identity
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import PROTOCOL
from services.rqp.cast.receiving.claim_connections import ClaimConnections
from services.rqp.cast.trace_propagation import hop_of
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Client, Pipe, Queue, Source, StoreError
from services.store.model import (
    BatchDiffers,
    Outcome,
    OutcomeUnknown,
    QueueFull,
    QueueUnknown,
    Refusals,
    TransactionId,
    now,
)
from services.store.pipeline import Asked, answered

log = logging.getLogger(__name__)

MS = 1000
AGAIN_S = 0.5  # pause after a failed renewal
FREE_S = 2.0  # timeout for releasing a queue: a draining edge does not wait for ever

# Any other error is REFUSED: nothing was stored, and nothing will be.
_REFUSED_AS: dict[type[StoreError], Insertion] = {
    BatchDiffers: Insertion.CLASH,
    QueueUnknown: Insertion.GONE,
    QueueFull: Insertion.FULL,
    OutcomeUnknown: Insertion.UNKNOWN,
}


class Reservation:
    """A queue reserved for one session, renewed until `free`."""

    def __init__(
        self, connections: ClaimConnections, queue: Queue, holder: str, ttl_s: float, source: str
    ) -> None:
        """source: the address that asked."""
        self.queue = queue
        self.source = source
        self.holder = holder
        self._claims = connections.of(queue)  # a single connection, so that no renewal overtakes the release
        self._ttl_s = ttl_s
        self._pause_s = ttl_s / 3  # between renewals; most sessions end before the first
        self._fence = 0
        self.is_freed = False
        self._renewing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def make(self, asked: Asked) -> None:
        """Reserve the queue.

        Raises StoreError: QueueReserved, QueueServed, QueuePaused, QueueUnknown, StoreUnavailable.
        """
        try:
            await self._reserve(asked)
        except (OutcomeUnknown, asyncio.CancelledError):
            await self._release("")  # it may have been reserved
            raise
        self._renew_later(self._pause_s)

    async def _reserve(self, asked: Asked | None = None) -> None:
        self._fence = await self._claims.reserve(self.queue, self.holder, round(self._ttl_s * MS), asked)

    async def free(self) -> None:
        """Release the queue; if the store is unavailable, the reservation expires."""
        self.is_freed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:  # a renewal under way must not reach the store after the release
            await asyncio.wait((self._renewing,), timeout=FREE_S)
            self._renewing.cancel()
        await self._release(self.source)

    async def _release(self, source: str) -> None:
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(FREE_S):
                await self._claims.release_reservation(self.queue, self.holder, self._fence, source)

    def _renew_later(self, pause_s: float) -> None:
        if not self.is_freed:
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._renew)

    def _renew(self) -> None:
        self._renewing = asyncio.create_task(self._renew_now(), name="rqp cast reservation")

    async def _renew_now(self) -> None:
        """Renew; a renewal that fails or hangs is repeated before the reservation expires."""
        pause_s = self._pause_s
        try:
            async with asyncio.timeout(pause_s):
                await self._reserve()
        except (StoreError, TimeoutError) as error:
            text = "reservation not renewed, will retry: %s"
            log.debug(text, error, extra={"action": "reservation_not_renewed"})
            pause_s = min(AGAIN_S, pause_s)
        self._renew_later(pause_s)


class Inserter:
    """The store as sessions use it. An insertion checks the reservation again, in the same step (3.2)."""

    def __init__(self, service: RqpService, counts: Counts) -> None:
        settings = service.settings.cast
        self._service = service
        self._connections = ClaimConnections(service)
        self._reservation_s = settings.reservation_s
        self._doubtful: set[str] = set()  # ids of queues that recently refused a message
        self._number = 0
        self._counts = counts
        self._keep_ms = round(settings.dedupe_window_s * MS)
        self._dead_letter_queue = settings.dead_letter_queue

    async def reserve(self, queue: Queue, source: str, came: float) -> Reservation:
        """Reserve a queue for a session that begins, as `source` asked at `came` by `clock.now`.

        Raises StoreError: QueueReserved, QueueServed if another replica has answered this question, or why the queue
        accepts nothing now. A queue without bounds is not checked for room until it refuses something.
        """
        self._number += 1
        prefix = f"{PROTOCOL} {self._service.name} "
        holder = f"{prefix}{self._number} {source}"
        if queue.spec.max_length or queue.spec.max_bytes or queue.qid in self._doubtful:
            await self._connections.of(queue).available(queue, holder)
            self._doubtful.discard(queue.qid)
        reserved = Reservation(self._connections, queue, holder, self._reservation_s, source)
        await reserved.make(Asked(source, round((now() - came) * MS), prefix))
        return reserved

    async def close(self) -> None:
        """Close the connections for reservations."""
        await self._connections.close()

    async def insert(self, reserved: Reservation, key: int, insert: Insert) -> Insertion:
        """Insert a message. Return the outcome."""
        queue, pipe = reserved.queue, self._service.pipe(reserved.queue)
        origin, holder = _origin(insert.agent), reserved.holder
        client = Client(self._service.store.edge, reserved.source)
        source = Source(client, begins_traces=not insert.id)  # with an id, the id decides
        try:
            if insert.id:
                return await self._insert_once(pipe, source, queue, key, insert, origin, holder)
            refusals: Refusals = await answered(
                lambda done: pipe.messages.publish(source, queue, [insert.record], origin, done, holder)
            )
            if refusals:
                raise refusals[0][1]
            return Insertion.STORED
        except StoreError as error:
            return self._refused(insert, queue, error)

    async def _insert_once(
        self, pipe: Pipe, source: Source, queue: Queue, key: int, insert: Insert, origin: str, holder: str
    ) -> Insertion:
        """Insert a certain message, whose id is stored as idempotency key in the same step (5.4)."""
        identifier = "cast " + identity(insert.agent, insert.id).hex()
        once = TransactionId(identifier, self._keep_ms, fingerprint(key, insert.record[4:]).hex())
        hops, record = self._service.store.trace_propagation, insert.record
        if hops is not None:
            record = hops.arrived(queue, record, hop_of(insert.agent, insert.id))
        outcome: Outcome = await answered(
            lambda done: pipe.idempotent.publish(source, once, queue, record, origin, done, holder=holder)
        )
        return Insertion.STORED if outcome is Outcome.STORED else Insertion.DUPLICATE

    def _refused(self, insert: Insert, queue: Queue, error: StoreError) -> Insertion:
        kinds = _REFUSED_AS.items()
        found = next((meaning for kind, meaning in kinds if isinstance(error, kind)), Insertion.REFUSED)
        if found in (Insertion.FULL, Insertion.REFUSED):
            self._doubtful.add(queue.qid)
        if found is Insertion.CLASH:
            self._counts.clashes.inc()
            fields = {"action": "cast_id_clash", "queue": queue.name, "peer": insert.agent, "id": insert.id}
            log.error("message refused: another message with the same id is already stored", extra=fields)
        return found

    async def bury(self, queue: Queue, agent: str, buried: BuryReceived) -> None:
        """Dead-letter a message in the queue; if it is deleted, in DEAD.LETTER.Q if that exists (5.2, 5.3)."""
        try:
            try:
                await self._bury(queue, agent, buried)
            except QueueUnknown:
                other = await self._service.store.catalogue.find(self._dead_letter_queue)
                await self._bury(other, agent, buried)
        except StoreError as error:
            self._counts.unburied(buried.reason)
            fields = {"action": "cast_unburied", "reason": buried.reason}
            log.warning("message lost, it could not be dead-lettered: %s", error, extra=fields)

    async def _bury(self, queue: Queue, agent: str, buried: BuryReceived) -> None:
        pipe, record = self._service.pipe(queue), encode_record(buried.data)
        await answered(
            lambda done: pipe.messages.bury(
                Source(INTERNAL_CLIENT), queue, record, _origin(agent), buried.reason, buried.detail, done
            )
        )


def _origin(agent: str) -> str:
    return f"cast {agent}"
