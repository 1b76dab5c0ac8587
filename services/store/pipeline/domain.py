"""One transaction domain as a process sees it: its pipe, its link, heartbeats, and the sweeping of dead sessions."""

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

SESSION_TIMEOUT_MS = 30_000  # silence after which a session is dead
BEAT_S = 10.0
STRAGGLER_MS = 60_000  # a mostly settled entry older than this is thinned out
SAMPLE_S = 10.0
SAMPLES_KEPT = 400_000
RECONCILE_STEP = 500  # entries counted in one call


@dataclass(frozen=True, slots=True)
class Timing:
    """How often a process looks after a domain; every process does, the functions keep them out of each other's way."""

    session_timeout_ms: int = SESSION_TIMEOUT_MS
    beat_s: float = BEAT_S
    sweep_s: float = 5.0
    upkeep_s: float = 30.0
    straggler_ms: int = STRAGGLER_MS
    sample_s: float = SAMPLE_S
    samples_kept: int = SAMPLES_KEPT  # in a domain; 0: nothing is sampled


class Domain:
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
        """recorder: this process is traced."""
        self.name = name
        self.keys = DomainKeys(name)
        self.link = Link(connector, self.keys.epoch)
        self.pipe = Pipe(connector, self.keys, edge, pipe_settings, observe, dataset_changed, recorder)
        self.tracing = self.pipe.tracing
        self.tallies = self.pipe.tallies
        self.claims = Claims(self.keys, self.link, self.tallies, self.function)
        self._timing = timing
        self._observe = observe
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False

    def start(self) -> None:
        """Opens the pipe and keeps its session alive."""
        if not self._started:
            self._started = True
            self.pipe.start()
            self._tasks.append(asyncio.create_task(self._beat(), name=f"beat {self.name}"))

    def start_sweeping(self) -> None:
        """Sweeps dead sessions from now on."""
        self._tasks.append(asyncio.create_task(self._sweep_for_ever(), name=f"sweep {self.name}"))

    async def finish(self, timeout: float = 5.0) -> None:
        """Nothing more is asked through the pipe; questions still may be."""
        if self._started:
            await self.pipe.close(timeout)
        if self.tracing is not None:
            self.tracing.delivery_spans.close()

    async def close(self) -> None:
        """After `finish`."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.link.close()

    async def epoch(self) -> str:
        """The epoch as the store has it now, '' if there is none."""
        found = await self.link.call("GET", self.keys.epoch)
        return found.decode() if found else ""

    async def function(self, name: str, keys: list[str], *args: Any, attempts: int = 2) -> Any:
        """One of our functions, under the domain's epoch (which stands first in both lists)."""
        epoch = self.pipe.epoch or await self.epoch()
        return await self.link.function(name, [self.keys.epoch, *keys], epoch, *args, attempts=attempts)

    async def declare(self, queue: Queue, maker: str) -> Any:
        """Sets the queue's limits and bindings; 1 if it is new and this maker's, b"GONE" while it is being deleted."""
        keys = [queue.keys[1], *self.keys.bindings]
        binding = queue.spec.subscription(queue.name)
        return await self.function("declare", keys, queue.qid, maker, binding, *queue.spec.fields())

    # heartbeats and the dead

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._timing.beat_s)
            session, asked = self.pipe.session, now()
            keys = [self.keys.sessions, self.keys.lane(session)]
            try:
                self.pipe.clock.heard(int(await self.function("session", keys, session, "beat")), asked)
            except StoreError as error:
                log.info("no heartbeat: %s", error, extra={"action": "heartbeat_failed", "session": session})

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.close_dead()
                await self.sweep()
            except StoreError as error:
                log.info("no sweep: %s", error, extra={"action": "sweep_failed"})
            await asyncio.sleep(self._timing.sweep_s * random.uniform(0.8, 1.2))

    async def close_dead(self) -> None:
        """Close sessions of processes that ran on this machine and have died: what they held is swept at once."""
        for found in await self.link.call("ZRANGE", self.keys.sessions, 0, -1):
            session = found.decode()
            if not has_died(session):
                continue
            keys = [self.keys.sessions, self.keys.lane(session), self.keys.dying, self.keys.lots(session)]
            with suppress(StoreUnavailable):  # another process was faster
                await self.function("session", keys, session, "close")
            log.info("closed a dead session", extra={"action": "session_closed", "session": session})

    async def sweep(self) -> int:
        """Returns what dead sessions held; answers how many messages went back or died."""
        timing = self._timing
        # Nobody looked for this long: the store, or all of us, were away. Together with the pause between heartbeats
        # it must stay below the timeout, or a store that stood still would cost sessions that are well.
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
            if visibility is None:  # the queue is gone, and the lease with it
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
        """Expires, trims, thins out and counts one step; a finished count is answered: {'len': difference, ...}."""
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
            log.error(
                "counters did not agree with the stream and were corrected",
                extra={"action": "counter_mismatch", "queue": queue.name, "wrong": wrong},
            )
        return wrong

    async def declared(self, queue: Queue) -> int:
        """How often its document was brought here; 0 where it is gone."""
        return int(await self.link.call("HGET", queue.keys[1], "declared") or 0)

    async def delete(self, queue: Queue, policy: str, declared: int | None = None) -> tuple[int, int]:
        """Whether it was done, and how many messages it had. What it counted last is sampled where samples are.

        declared: how often it has to have been declared. Raises QueueChanged; NameReserved for the queue of a ring node
        that runs.
        """
        await self.claims.check_unserved(queue)
        keys = [*queue.keys, *self.keys.bindings, self.keys.samples]
        name, kept = encode_name(queue.name), self._timing.samples_kept
        seen = () if declared is None else (declared,)
        # asked again after an answer that was lost, it would find it gone
        attempts = 2 if declared is None else 1
        try:
            reply = await self.function(
                "delete", keys, queue.qid, policy, name, kept, *seen, attempts=attempts
            )
        except OutcomeUnknown:
            if await self.link.call("HGET", queue.keys[1], "deleted") is None:
                raise
            return (
                1,
                0,
            )  # nobody makes a queue of this id again; how many messages it had was in the answer that is lost
        if reply == b"CHANGED":
            raise QueueChanged
        done, messages = reply
        return done, messages

    # looking

    async def peek(
        self, queue: Queue, count: int, max_bytes: int = 4 << 20, behind: int = -1
    ) -> list[Delivery]:
        """The next ready messages, without taking them; those behind this position. The last one may be the one that is
        too much for max_bytes."""
        reply = await self.link.function("peek", list(queue.keys), count, max_bytes, behind)
        if reply == b"GONE":
            raise QueueUnknown
        return delivery.parse(queue, reply, 0)
