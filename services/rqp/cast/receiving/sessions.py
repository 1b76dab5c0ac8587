"""Begin a session for each question whose queue and two ports are available (rqp_cast.md 3.2, 5.1)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field

from protos.rqp_cast import Unanswered
from services.kit.net import Denials
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import PROTOCOL, Machines
from services.rqp.cast.ports.ports import PeerKey, Port, Ports
from services.rqp.cast.ports.session_slots import TOO_MANY_SESSIONS, SessionSlots
from services.rqp.cast.receiving.insertion import Inserter, Reservation
from services.rqp.cast.receiving.session import Session
from services.rqp.cast.settings import PeerOptions
from services.rqp.service import RqpService
from services.store import Client, Queue, StoreError
from services.store.model import QueueReserved, QueueServed, QueueUnknown, now

log = logging.getLogger(__name__)

SOON = 0.75  # of T_WAIT1: how long after its arrival a question may be answered


@dataclass(slots=True)
class Busy:
    """A queue that a session of this process has, or is about to have."""

    source: str  # the sender's address
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Sessions:
    """The sessions of a process."""

    def __init__(self, service: RqpService, machines: Machines, counts: Counts) -> None:
        self._service = service
        self._settings = settings = service.settings.cast
        self._machines = machines
        self._counts = counts
        self._store = service.store
        self.ports = Ports(settings.host, settings.receiver_range, settings.port_rest_s)
        self.slots = SessionSlots(settings.max_sessions_per_address, self.ports)
        self._denials = Denials(service.metrics)
        self._inserter = Inserter(service, counts)
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._busy: dict[str, Busy] = {}  # by the queue's id

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of all sessions."""
        return list(self._sessions)

    @property
    def active(self) -> list[Session]:
        """All sessions."""
        return list(self._sessions.values())

    async def close(self) -> None:
        """End all sessions now."""
        await asyncio.sleep(0)  # a task that is cancelled before it has begun would free nothing
        while self._sessions:
            for task in self._sessions:
                task.cancel()
            await asyncio.wait(tuple(self._sessions))
        self.ports.close()
        await self._inserter.close()

    def refusal(self, key: int, source: str) -> str | None:
        """Return why there can be no session, as far as known without the store; None if `begin` should be tried."""
        queue = self._store.catalogue.numbers.held(PROTOCOL, key)
        if queue is not None and self._is_denied(queue, source):
            return Unanswered.ACCESS_DENIED.value
        if queue is not None and (busy := self._busy.get(queue.qid)) is not None and busy.source != source:
            return Unanswered.RESERVED.value
        if queue is None and self._store.catalogue.numbers.lacks(PROTOCOL, key):
            return Unanswered.UNKNOWN_KEY.value
        return self.slots.refusal(PeerKey(source, key))

    async def begin(self, key: int, source: str, came: float) -> str | None:
        """Begin a session for a question that arrived at `came` by `clock.now`. Return why not, or None."""
        if not await self.slots.take(source, self._until(came)):
            return TOO_MANY_SESSIONS
        unanswered: Unanswered | None = Unanswered.UNAVAILABLE
        try:
            unanswered = await self._begin(key, source, came)
        finally:
            if unanswered is not None:
                self.slots.leave(source)
        return None if unanswered is None else unanswered.value

    def _until(self, came: float) -> float:
        """Return until when, by the loop's clock, a question may wait and still be answered in time."""
        left_s = came + SOON * self._settings.t_wait1_s - now()
        return asyncio.get_running_loop().time() + left_s

    async def _begin(self, key: int, source: str, came: float) -> Unanswered | None:
        """Begin a session. Return why not, or None.

        Only questions for existing queues wait for ports. The queue is reserved after that: other replicas may have
        ports earlier.
        """
        while True:
            if isinstance(queue := await self._queue(key, source), Unanswered):
                return queue
            if not await self._is_free_soon(queue, source, came):
                return Unanswered.RESERVED
            ports = await self.slots.ports(PeerKey(source, key), self._until(came))
            if ports is None:
                return Unanswered.PORTS_USED_UP
            if queue.qid not in self._busy:
                return await self._begin_on(ports, queue, key, source, came)
            _give_back(ports)  # another question got the queue meanwhile

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
        """Begin a session with these ports. Return why not, or None."""
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

    async def _is_free_soon(self, queue: Queue, source: str, came: float) -> bool:
        """Return whether no session has the queue; wait for one of the same sender to end.

        A sender of uncertain messages asks for the next one as soon as it has sent the last octet, which this process
        may still have to read or store.
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
        options = self._options(reserved.queue, source)
        session = Session(self._settings, options, self._inserter, self._counts, reserved, ports, key)
        session.on_free = lambda: self._free(reserved.queue)
        task = asyncio.create_task(self._run(session))
        self._sessions[task] = session
        task.add_done_callback(self._sessions.pop)

    async def _run(self, session: Session) -> None:
        try:
            await session.run()
        except Exception:
            fields = {"action": "cast_session_failed", "peer": session.source}
            log.exception("internal error, receiving session ended", extra=fields)
            self._service.metrics.local_errors.inc()
        finally:
            self.slots.leave(session.source)

    def _options(self, queue: Queue, source: str) -> PeerOptions:
        """Return the machine's options; the queue may override how duplicates are answered (5.4)."""
        options = self._machines.options(source)
        if queue.spec.bindings.rqp_cast.duplicate_result == "success":
            return options.model_copy(update={"duplicate_result": "success"})
        return options


def _give_back(ports: tuple[Port, Port]) -> None:
    """Free ports that were not announced."""
    for port in ports:
        port.close(rests=False)
