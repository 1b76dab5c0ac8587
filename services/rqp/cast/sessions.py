"""Questions that are to be answered become sessions, if the queue and two ports can be had (rqp_cast.md 3.2, 5.1)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from dataclasses import dataclass, field

from protos.rqp_cast import Unanswered
from services.rqp.cast.counts import Counts
from services.rqp.cast.insertion import Inserter, Reservation
from services.rqp.cast.machines import PROTOCOL, Machines
from services.rqp.cast.ports import Port, Ports, Whom
from services.rqp.cast.session import Session
from services.rqp.cast.settings import CastSettings, Manners
from services.rqp.service import RqpService
from services.store import Queue, StoreError
from services.store.errors import QueueReserved, QueueUnknown

log = logging.getLogger(__name__)

FREE_SOON_S = 0.5  # for the session of whoever asks again; well below T_WAIT1
TOO_MANY_SESSIONS = "too_many_sessions"  # of this address; beside the reasons of the protocol's document


@dataclass(slots=True)
class Busy:
    """A queue that a session of this process has, or is about to have."""

    source: str  # who sends
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Sessions:
    """Those of a process."""

    def __init__(
        self, service: RqpService, settings: CastSettings, machines: Machines, counts: Counts
    ) -> None:
        self._service = service
        self._settings = settings
        self._machines = machines
        self._counts = counts
        self._store = service.store
        self._ports = Ports(settings.host, settings.receiver_range, settings.port_rest_s)
        self._inserter = Inserter(service, settings, counts)
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._busy: dict[str, Busy] = {}  # by the queue's id: which have a session here
        self._of_address: Counter[str] = Counter()  # sessions, and questions that may become some

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._sessions)

    @property
    def under_way(self) -> list[Session]:
        return list(self._sessions.values())

    async def close(self) -> None:
        """Whatever is under way ends now."""
        await asyncio.sleep(0)  # what has only just been made must have begun, or it would free nothing
        while self._sessions:
            for task in self._sessions:
                task.cancel()
            await asyncio.wait(tuple(self._sessions))
        self._ports.close()
        await self._inserter.close()

    def admit(self, key: int, source: str) -> str | None:
        """None if `begin` is to be tried; else why there is surely no session, known without asking the store."""
        refusal = self._refusal(key, source)
        if refusal is None:
            self._of_address[source] += 1
        return refusal

    def _refusal(self, key: int, source: str) -> str | None:
        queue = self._store.numbers.held(PROTOCOL, key)
        if queue is not None and self._is_another_s(queue, source):
            return Unanswered.RESERVED.value
        if not self._ports.has(2, Whom(source, key)):
            return Unanswered.PORTS_USED_UP.value
        if self._of_address[source] >= self._settings.max_sessions_per_address:
            return TOO_MANY_SESSIONS
        return None

    async def begin(self, key: int, source: str) -> Unanswered | None:
        """None if a session has begun. Once for each question that was admitted."""
        unanswered: Unanswered | None = Unanswered.UNAVAILABLE
        try:
            unanswered = await self._begin(key, source)
        finally:
            if unanswered is not None:
                self._leave(source)
        return unanswered

    async def _begin(self, key: int, source: str) -> Unanswered | None:
        """None if a session has begun."""
        try:
            queue = await self._store.numbered(PROTOCOL, key)
        except QueueUnknown:
            return Unanswered.UNKNOWN_KEY
        except StoreError:
            return Unanswered.UNAVAILABLE
        if queue.spec.remote is not None:
            return Unanswered.REMOTE
        if not await self._is_free_soon(queue, source):
            return Unanswered.RESERVED
        self._busy[queue.qid] = Busy(source)
        unanswered: Unanswered | None = Unanswered.UNAVAILABLE
        try:
            unanswered = await self._reserve(queue, key, source)
        finally:
            if unanswered is not None:
                self._free(queue)
        return unanswered

    def _is_another_s(self, queue: Queue, source: str) -> bool:
        busy = self._busy.get(queue.qid)
        return busy is not None and busy.source != source

    async def _is_free_soon(self, queue: Queue, source: str) -> bool:
        """Whether no session has the queue, or the one of the same sender ends at once.

        Who has sent an uncertain message whole asks for the next one without knowing how far we are: it may still lie
        unread, or be on its way to the store.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FREE_SOON_S):
                while (busy := self._busy.get(queue.qid)) is not None and busy.source == source:
                    await busy.ended.wait()
        return queue.qid not in self._busy

    def _free(self, queue: Queue) -> None:
        self._busy.pop(queue.qid).ended.set()

    async def _reserve(self, queue: Queue, key: int, source: str) -> Unanswered | None:
        try:
            reserved = await self._inserter.reserve(queue)
        except QueueReserved:
            return Unanswered.RESERVED
        except QueueUnknown:
            self._store.numbers.changed()
            return Unanswered.UNKNOWN_KEY
        except StoreError:
            return Unanswered.UNAVAILABLE
        ports = self._open_ports(Whom(source, key))
        if ports is None:
            await reserved.free()
            return Unanswered.PORTS_USED_UP
        self._start_session(reserved, ports, key, source)
        return None

    def _open_ports(self, whom: Whom) -> tuple[Port, Port] | None:
        first = self._ports.open(whom)
        if first is None:
            return None
        second = self._ports.open(whom)
        if second is None:
            first.close(rests=False)
            return None
        return first, second

    def _start_session(self, reserved: Reservation, ports: tuple[Port, Port], key: int, source: str) -> None:
        manners = self._manners(reserved.queue, source)
        session = Session(self._settings, manners, self._inserter, self._counts, reserved, ports, key, source)
        session.on_free = lambda: self._free(reserved.queue)
        task = asyncio.create_task(self._run(session))
        self._sessions[task] = session
        task.add_done_callback(self._sessions.pop)

    async def _run(self, session: Session) -> None:
        try:
            await session.run()
        except Exception:
            log.exception("a session failed", extra={"action": "cast_session_failed", "peer": session.source})
            self._service.metrics.local_errors.inc()
        finally:
            self._leave(session.source)

    def _leave(self, source: str) -> None:
        self._of_address[source] -= 1
        if not self._of_address[source]:
            del self._of_address[source]

    def _manners(self, queue: Queue, source: str) -> Manners:
        """The group's; a queue may say for itself that a duplicate is well received (5.4)."""
        manners = self._machines.manners(source)
        if queue.spec.bindings.rqp_cast.duplicate_result == "success":
            return manners.model_copy(update={"duplicate_result": "success"})
        return manners
