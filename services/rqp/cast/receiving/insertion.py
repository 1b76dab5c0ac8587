"""The store's side of a receiving session: the reservation, the insertion, the dead letters (rqp_cast.md 3.2, 5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from protos.rqp_cast import BuryReceived, Insert, Insertion, encode_record, fingerprint, identity
from services.rqp.cast.counts import Counts
from services.rqp.cast.hops import hop_of
from services.rqp.cast.machines.machines import PROTOCOL
from services.rqp.cast.receiving.lanes import Lanes
from services.rqp.cast.settings import CastSettings
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
AGAIN_S = 0.5  # before a renewal that failed is repeated
FREE_S = 2.0  # for the store to hear that a queue is free; an edge that drains does not wait for ever

# What a refusal of the store means; any other one is REFUSED: nothing was stored, and nothing will be.
_REFUSED_AS: dict[type[StoreError], Insertion] = {
    BatchDiffers: Insertion.CLASH,
    QueueUnknown: Insertion.GONE,
    QueueFull: Insertion.FULL,
    OutcomeUnknown: Insertion.UNKNOWN,
}


class Reservation:
    """A queue that is reserved for one session: renewed by itself, until `free`."""

    def __init__(self, lanes: Lanes, queue: Queue, holder: str, ttl_s: float, asker: str) -> None:
        self.queue = queue
        self._asker = asker
        self._lane = lanes.of(queue)  # one for all: nothing that was asked before comes behind the end
        self._holder = holder
        self._ttl_s = ttl_s
        self._pause_s = ttl_s / 3  # between renewals; most sessions have ended by then, and need none
        self._fence = 0
        self.is_freed = False
        self._renewing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def holder(self) -> str:
        return self._holder

    @property
    def asker(self) -> str:
        """The address that asked."""
        return self._asker

    async def make(self, asked: Asked) -> None:
        """Raises StoreError: QueueReserved, QueueServed, QueuePaused, QueueUnknown, StoreUnavailable."""
        try:
            await self._reserve(asked)
        except (OutcomeUnknown, asyncio.CancelledError):
            await self._release("")  # it may be ours
            raise
        self._renew_later(self._pause_s)

    async def _reserve(self, asked: Asked | None = None) -> None:
        self._fence = await self._lane.reserve(self.queue, self._holder, round(self._ttl_s * MS), asked)

    async def free(self) -> None:
        """Whoever asks next finds the queue free; if the store cannot be told, the reservation runs out."""
        self.is_freed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:  # the store may be about to hear it: it must not hear it last
            await asyncio.wait((self._renewing,), timeout=FREE_S)
            self._renewing.cancel()
        await self._release(self._asker)

    async def _release(self, asker: str) -> None:
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(FREE_S):
                await self._lane.release_reservation(self.queue, self._holder, self._fence, asker)

    def _renew_later(self, pause_s: float) -> None:
        if not self.is_freed:
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._renew)

    def _renew(self) -> None:
        self._renewing = asyncio.create_task(self._renew_now(), name="rqp cast reservation")

    async def _renew_now(self) -> None:
        """Renew; a renewal that fails or hangs is repeated before the reservation runs out."""
        pause_s = self._pause_s
        try:
            async with asyncio.timeout(pause_s):
                await self._reserve()
        except (StoreError, TimeoutError) as error:
            log.debug("a reservation was not renewed: %s", error, extra={"action": "reservation_not_renewed"})
            pause_s = min(AGAIN_S, pause_s)
        self._renew_later(pause_s)


class Inserter:
    """What sessions ask of the store. The insertion looks again at the reservation, in the same step (3.2)."""

    def __init__(self, service: RqpService, settings: CastSettings, counts: Counts) -> None:
        self._service = service
        self._lanes = Lanes(service)
        self._reservation_s = settings.reservation_s
        self._doubtful: set[str] = set()  # ids of queues that refused a message lately
        self._number = 0
        self._counts = counts
        self._keep_ms = round(settings.dedupe_window_s * MS)
        self._dead_letter_queue = settings.dead_letter_queue

    async def reserve(self, queue: Queue, source: str, came: float) -> Reservation:
        """For a session that begins, as `source` asked at `came` by `clock.now`. Raises StoreError: QueueReserved,
        QueueServed if another replica has answered that, or why the queue takes nothing now.

        A queue that has no bounds is not asked whether it has room, until it refuses something.
        """
        self._number += 1
        ours = f"{PROTOCOL} {self._service.name} "
        holder = f"{ours}{self._number} {source}"
        if queue.spec.max_length or queue.spec.max_bytes or queue.qid in self._doubtful:
            await self._lanes.of(queue).available(queue, holder)
            self._doubtful.discard(queue.qid)
        reserved = Reservation(self._lanes, queue, holder, self._reservation_s, source)
        await reserved.make(Asked(source, round((now() - came) * MS), ours))
        return reserved

    async def close(self) -> None:
        await self._lanes.close()

    async def insert(self, reserved: Reservation, key: int, insert: Insert) -> Insertion:
        """What became of it."""
        queue, pipe = reserved.queue, self._service.pipe(reserved.queue)
        origin, holder = _origin(insert.agent), reserved.holder
        client = Client(self._service.store.edge, reserved.asker)
        source = Source(client, begins_traces=not insert.id)  # else the id decides
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
        """A certain one: its id is remembered in the same step as its insertion (5.4)."""
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
        found = meaning(error)
        if found in (Insertion.FULL, Insertion.REFUSED):
            self._doubtful.add(queue.qid)
        if found is Insertion.CLASH:
            self._counts.clashes.inc()
            fields = {"action": "cast_id_clash", "queue": queue.name, "peer": insert.agent, "id": insert.id}
            log.error("a message has the id of another one that was stored before", extra=fields)
        return found

    async def bury(self, queue: Queue, agent: str, buried: BuryReceived) -> None:
        """To the dead letters of the queue; if that is gone, to those of DEAD.LETTER.Q, if there is one (5.2, 5.3)."""
        try:
            await self._bury(queue, agent, buried)
        except QueueUnknown:
            await self._bury_elsewhere(agent, buried)
        except StoreError as error:
            self._lost(buried, str(error))

    async def _bury_elsewhere(self, agent: str, buried: BuryReceived) -> None:
        try:
            await self._bury(await self._service.store.catalogue.find(self._dead_letter_queue), agent, buried)
        except StoreError as error:
            self._lost(buried, str(error))

    async def _bury(self, queue: Queue, agent: str, buried: BuryReceived) -> None:
        pipe, record = self._service.pipe(queue), encode_record(buried.data)
        await answered(
            lambda done: pipe.messages.bury(
                Source(INTERNAL_CLIENT), queue, record, _origin(agent), buried.reason, buried.detail, done
            )
        )

    def _lost(self, buried: BuryReceived, why: str) -> None:
        self._counts.unburied(buried.reason)
        fields = {"action": "cast_unburied", "reason": buried.reason}
        log.warning("a message was lost that no dead letters took: %s", why, extra=fields)


def meaning(error: StoreError) -> Insertion:
    """What a refusal of the store means for a session."""
    return next((found for kind, found in _REFUSED_AS.items() if isinstance(error, kind)), Insertion.REFUSED)


def _origin(agent: str) -> str:
    return f"cast {agent}"
