"""One process's access to a transaction domain: its pipe, its link, heartbeats and the sweep of dead sessions."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from services.store.model import delivery
from services.store.model.alarms import COUNTER_MISMATCH
from services.store.model.clock import now
from services.store.model.delivery import Delivery
from services.store.model.errors import (
    OutcomeUnknown,
    QueueChanged,
    QueueUnknown,
    StoreError,
    StoreUnavailable,
)
from services.store.model.keys import DomainKeys
from services.store.model.names import encode_name
from services.store.model.queues import Queue
from services.store.pipeline.claims import Claims
from services.store.pipeline.pipe import Pipe, PipeSettings
from services.store.redis.connect import Connector
from services.store.redis.link import Link
from services.store.redis.process_names import has_died
from services.store.tracing.spans import Recorder

log = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 30_000  # a session without a heartbeat for this long is dead
SAMPLE_S = 10.0
SAMPLES_KEPT = 400_000
RECONCILE_STEP = 500  # entries counted in one call


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals of a domain's upkeep. Every process does it; the store's functions coordinate them."""

    session_timeout_ms: int = SESSION_TIMEOUT_MS  # a session without a heartbeat for this long is dead
    beat_s: float = 10.0  # between two heartbeats
    sweep_s: float = 5.0  # between two sweeps of dead sessions
    upkeep_s: float = 30.0  # between two rounds of expiry, trimming and compaction
    straggler_ms: int = 60_000  # mostly settled entries older than this are compacted
    sample_s: float = SAMPLE_S  # between two samples
    samples_kept: int = SAMPLES_KEPT  # in a domain; 0: sampling is off


class Domain:
    """A transaction domain. Messages go through `pipe`, questions and administration through `link`."""

    def __init__(
        self,
        name: str,
        connector: Connector,
        edge: str,
        pipe_settings: PipeSettings,
        timing: Timing,
        observe: Callable[[str, int], None],
        dataset_changed: Callable[[str], None],
        recorder: Recorder | None = None,
    ) -> None:
        """Connect nothing yet. recorder: set if this process is traced."""
        self.name = name  # of the domain
        self.keys = DomainKeys(name)  # its keys in Redis
        self.link = Link(connector, self.keys.epoch)  # questions and administration, outside the pipe
        # puts, takes and settles messages
        self.pipe = Pipe(connector, self.keys, edge, pipe_settings, observe, dataset_changed, recorder)
        self.tracing = self.pipe.tracing  # None if this process is not traced
        self.tallies = self.pipe.tallies  # counts by queue
        # reservations and ownership of queues
        self.claims = Claims(self.keys, self.link, self.tallies, self.function)
        self._timing = timing
        self._observe = observe
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False

    def start(self) -> None:
        """Open the pipe and keep its session alive. Repeated calls do nothing."""
        if not self._started:
            self._started = True
            self.pipe.start()
            self._tasks.append(asyncio.create_task(self._beat(), name=f"beat {self.name}"))

    def start_sweeping(self) -> None:
        """Sweep dead sessions periodically from now on."""
        self._tasks.append(asyncio.create_task(self._sweep_for_ever(), name=f"sweep {self.name}"))

    async def finish(self, timeout: float = 5.0) -> None:
        """Close the pipe once its operations are done; `link` still works."""
        if self._started:
            await self.pipe.close(timeout)
        if self.tracing is not None:
            self.tracing.delivery_spans.close()

    async def close(self) -> None:
        """End the periodic work and close the link. Call `finish` before."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.link.close()

    async def epoch(self) -> str:
        """Return the domain's epoch in the store, '' without one."""
        found = await self.link.call("GET", self.keys.epoch)
        return found.decode() if found else ""

    async def function(self, name: str, keys: list[str], *args: Any, attempts: int = 2) -> Any:
        """Call a library function under the domain's epoch, which is its first key and first argument."""
        epoch = self.pipe.epoch or await self.epoch()
        return await self.link.function(name, [self.keys.epoch, *keys], epoch, *args, attempts=attempts)

    async def declare(self, queue: Queue, maker: str) -> Any:
        """Write the queue's limits and bindings; return 1 if it is new, b"GONE" while it is being deleted."""
        keys = [queue.keys[1], *self.keys.bindings]
        binding = queue.spec.subscription(queue.name)
        return await self.function("declare", keys, queue.qid, maker, binding, *queue.spec.fields())

    # heartbeats and dead sessions

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._timing.beat_s)
            session, asked = self.pipe.session, now()
            keys = [self.keys.sessions, self.keys.lane(session)]
            try:
                self.pipe.clock.heard(int(await self.function("session", keys, session, "beat")), asked)
            except StoreError as error:
                fields = {"action": "heartbeat_failed", "session": session}
                log.info("heartbeat failed; the session expires unless one succeeds: %s", error, extra=fields)

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.close_dead()
                await self.sweep()
            except StoreError as error:
                fields = {"action": "sweep_failed"}
                log.info("sweep of dead sessions failed; it will be retried: %s", error, extra=fields)
            await asyncio.sleep(self._timing.sweep_s * random.uniform(0.8, 1.2))

    async def close_dead(self) -> None:
        """Close sessions of dead processes of this machine, so that the next sweep returns their messages."""
        for found in await self.link.call("ZRANGE", self.keys.sessions, 0, -1):
            session = found.decode()
            if not has_died(session):
                continue
            keys = [self.keys.sessions, self.keys.lane(session), self.keys.dying, self.keys.lots(session)]
            with suppress(StoreUnavailable):  # another process has closed it
                await self.function("session", keys, session, "close")
            log.info("closed a dead session", extra={"action": "session_closed", "session": session})

    async def sweep(self) -> int:
        """Return the leased messages of dead sessions; return how many went back or to the dead letters."""
        timing = self._timing
        # After this long without any sweep, the store or all processes were away, and no session is declared dead.
        # Plus the heartbeat interval it must stay below the timeout, or a store that hung would cost live sessions.
        quiet = int(timing.sweep_s * 2000 + 1000)
        keys = [self.keys.sessions, self.keys.dying, self.keys.state]
        now_ms, *dying = await self.function("fence", keys, timing.session_timeout_ms, quiet)
        moved = 0
        for i in range(0, len(dying), 2):
            moved += await self._sweep_session(dying[i].decode(), int(now_ms) - int(float(dying[i + 1])))
        return moved

    async def _sweep_session(self, session: str, silent_ms: int) -> int:
        own = [self.keys.dying, self.keys.lots(session), self.keys.lane(session)]
        moved = waiting = 0
        for member in await self.link.call("SMEMBERS", self.keys.lots(session)):
            qid, lot = member.decode().split(" ")
            queue_keys = self.keys.queue(qid)
            visibility = await self.link.call("HGET", queue_keys[1], "visibility")
            if visibility is None:  # the queue was deleted with its leases
                await self.link.call("SREM", self.keys.lots(session), member)
            elif silent_ms < int(visibility):
                waiting += 1
            else:
                back, dead, *_ = await self.function(
                    "sweep", [*own, *queue_keys], session, lot, self.keys.wake_channel
                )
                moved += back + dead
        if not waiting:
            await self.function("bury_session", own, session)
            log.info(
                "swept a dead session",
                extra={"action": "session_swept", "session": session, "messages": moved},
            )
        return moved

    # upkeep

    async def tidy(self, queue: Queue, straggler_ms: int | None = None) -> dict[str, int] | None:
        """Expire, trim, compact and count one step of a queue.

        Return the corrections of a count that was completed by it ({'len': difference, ...}), else None.
        """
        age = self._timing.straggler_ms if straggler_ms is None else straggler_ms
        retention = queue.spec.dead_letter.retention
        name, kept = encode_name(queue.name), self._timing.samples_kept
        keys = [*queue.keys, self.keys.samples]
        reply = await self.function("upkeep", keys, age, RECONCILE_STEP, retention, name, kept)
        if reply == b"GONE" or not reply:
            return None
        counted, bytes_, leased, had, had_bytes, had_leased = reply
        wrong = {"len": counted - had, "bytes": bytes_ - had_bytes, "leased": leased - had_leased}
        if any(wrong.values()):
            self._observe(COUNTER_MISMATCH, 1)
            fields = {"action": "counter_mismatch", "queue": queue.name, "wrong": wrong}
            log.error("queue counters did not match the stream; they were corrected", extra=fields)
        return wrong

    async def declared(self, queue: Queue) -> int:
        """Return how often the queue was declared; 0 if it does not exist."""
        return int(await self.link.call("HGET", queue.keys[1], "declared") or 0)

    async def delete(self, queue: Queue, policy: str, declared: int | None = None) -> tuple[int, int]:
        """Delete the queue; return whether that was done and how many messages it had. Write its last sample.

        declared: the expected number of declarations. Raises QueueChanged if it is another one; NameReserved for the
        queue of a running ring node.
        """
        await self.claims.check_unserved(queue)
        keys = [*queue.keys, *self.keys.bindings, self.keys.samples]
        name, kept = encode_name(queue.name), self._timing.samples_kept
        seen = () if declared is None else (declared,)
        # a repeat after a lost reply would find the queue deleted and fail
        attempts = 2 if declared is None else 1
        try:
            args = (queue.qid, policy, name, kept, *seen)
            reply = await self.function("delete", keys, *args, attempts=attempts)
        except OutcomeUnknown:
            if await self.link.call("HGET", queue.keys[1], "deleted") is None:
                raise
            return 1, 0  # queue ids are never reused; the number of messages was in the lost reply
        if reply == b"CHANGED":
            raise QueueChanged
        done, messages = reply
        return done, messages

    async def peek(
        self, queue: Queue, count: int, max_bytes: int = 4 << 20, behind: int = -1
    ) -> list[Delivery]:
        """Return the next ready messages after the position `behind`, without leasing them.

        The last one may be the one that exceeds max_bytes. Raises QueueUnknown.
        """
        reply = await self.link.function("peek", list(queue.keys), count, max_bytes, behind)
        if reply == b"GONE":
            raise QueueUnknown
        return delivery.parse(queue, reply, 0)
