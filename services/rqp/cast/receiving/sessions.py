"""Questions that are to be answered become sessions, if the queue and two ports can be had (rqp_cast.md 3.2, 5.1)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field

from protos.rqp_cast import Unanswered
from services.kit.net import Denials
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import PROTOCOL, Machines
from services.rqp.cast.ports.places import TOO_MANY_SESSIONS, Places
from services.rqp.cast.ports.ports import Port, Ports, Whom
from services.rqp.cast.receiving.insertion import Inserter, Reservation
from services.rqp.cast.receiving.session import Session
from services.rqp.cast.settings import CastSettings, Manners
from services.rqp.service import RqpService
from services.store import Client, Queue, StoreError
from services.store.model import QueueReserved, QueueServed, QueueUnknown, now

log = logging.getLogger(__name__)

SOON = 0.75  # of T_WAIT1: how long after it came a question may be answered


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
        self.ports = Ports(settings.host, settings.receiver_range, settings.port_rest_s)
        self.places = Places(settings.max_sessions_per_address, self.ports)
        self._denials = Denials(service.metrics)
        self._inserter = Inserter(service, settings, counts)
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._busy: dict[str, Busy] = {}  # by the queue's id: which have a session here

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
        self.ports.close()
        await self._inserter.close()

    def refusal(self, key: int, source: str) -> str | None:
        """None if `begin` is to be tried; else why there is surely no session, known without asking the store."""
        queue = self._store.catalogue.numbers.held(PROTOCOL, key)
        if queue is not None and self._is_denied(queue, source):
            return Unanswered.ACCESS_DENIED.value
        if queue is not None and self._is_another_s(queue, source):
            return Unanswered.RESERVED.value
        if queue is None and self._store.catalogue.numbers.lacks(PROTOCOL, key):
            return Unanswered.UNKNOWN_KEY.value
        return self.places.refusal(Whom(source, key))

    async def begin(self, key: int, source: str, came: float) -> str | None:
        """None if a session has begun, else why not. Once for each question; it came then, by `clock.now`."""
        if not await self.places.take(source, self._until(came)):
            return TOO_MANY_SESSIONS
        unanswered: Unanswered | None = Unanswered.UNAVAILABLE
        try:
            unanswered = await self._begin(key, source, came)
        finally:
            if unanswered is not None:
                self.places.leave(source)
        return None if unanswered is None else unanswered.value

    def _until(self, came: float) -> float:
        """Until then by the loop's clock it may wait, and still be answered in time."""
        left_s = came + SOON * self._settings.t_wait1_s - now()
        return asyncio.get_running_loop().time() + left_s

    async def _begin(self, key: int, source: str, came: float) -> Unanswered | None:
        """None if a session has begun.

        Ports are waited for only for keys that are here. No queue is reserved meanwhile: others may have some.
        """
        while True:
            if isinstance(queue := await self._queue(key, source), Unanswered):
                return queue
            if not await self._is_free_soon(queue, source, came):
                return Unanswered.RESERVED
            ports = await self.places.ports(Whom(source, key), self._until(came))
            if ports is None:
                return Unanswered.PORTS_USED_UP
            if queue.qid not in self._busy:
                return await self._begin_on(ports, queue, key, source, came)
            _give_back(ports)  # another question has got it meanwhile

    async def _queue(self, key: int, source: str) -> Queue | Unanswered:
        try:
            queue = await self._store.catalogue.numbered(PROTOCOL, key)
        except QueueUnknown:
            return Unanswered.UNKNOWN_KEY
        except StoreError:
            return Unanswered.UNAVAILABLE
        if self._is_denied(queue, source):
            return Unanswered.ACCESS_DENIED
        return queue if queue.spec.remote is None else Unanswered.REMOTE

    def _is_denied(self, queue: Queue, source: str) -> bool:
        refusal = queue.refusal(Client(self._store.edge, source))
        if refusal is not None:
            self._denials.record(refusal.reason, source, str(refusal))
        return refusal is not None

    async def _begin_on(
        self, ports: tuple[Port, Port], queue: Queue, key: int, source: str, came: float
    ) -> Unanswered | None:
        """None if a session has begun."""
        self._busy[queue.qid] = Busy(source)
        reserved: Reservation | Unanswered = Unanswered.UNAVAILABLE
        try:
            reserved = await self._reserve(queue, source, came)
        finally:
            if isinstance(reserved, Unanswered):
                self._free(queue)
                _give_back(ports)
        if isinstance(reserved, Unanswered):
            return reserved
        self._start_session(reserved, ports, key, source)
        return None

    def _is_another_s(self, queue: Queue, source: str) -> bool:
        busy = self._busy.get(queue.qid)
        return busy is not None and busy.source != source

    async def _is_free_soon(self, queue: Queue, source: str, came: float) -> bool:
        """Whether no session has the queue, or the one of the same sender ends at once.

        Who has sent an uncertain message whole asks for the next one without knowing how far we are: it may still lie
        unread, or be on its way to the store.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._until(came)):
                while (busy := self._busy.get(queue.qid)) is not None and busy.source == source:
                    await busy.ended.wait()
        return queue.qid not in self._busy

    def _free(self, queue: Queue) -> None:
        self._busy.pop(queue.qid).ended.set()

    async def _reserve(self, queue: Queue, source: str, came: float) -> Reservation | Unanswered:
        try:
            return await self._inserter.reserve(queue, source, came)
        except QueueServed:
            return Unanswered.ANSWERED
        except QueueReserved:
            return Unanswered.RESERVED
        except QueueUnknown:
            self._store.catalogue.numbers.changed()
            return Unanswered.UNKNOWN_KEY
        except StoreError:
            return Unanswered.UNAVAILABLE

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
            self.places.leave(session.source)

    def _manners(self, queue: Queue, source: str) -> Manners:
        """The group's; a queue may say for itself that a duplicate is well received (5.4)."""
        manners = self._machines.manners(source)
        if queue.spec.bindings.rqp_cast.duplicate_result == "success":
            return manners.model_copy(update={"duplicate_result": "success"})
        return manners


def _give_back(ports: tuple[Port, Port]) -> None:
    """Nobody was told of them."""
    for port in ports:
        port.close(rests=False)
