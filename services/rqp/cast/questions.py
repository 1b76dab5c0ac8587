"""The receiving agent: hears questions, answers some, and begins their sessions (rqp_cast.md 3.2, 5.1).

However many datagrams come, little is done for each: one address may ask so often, so many questions wait for the
store at once, and a session needs two of the ports that there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from dataclasses import dataclass, field

from protos.rqp_cast import QuestionMsg, Unanswered, judge_question
from protos.types import PeerError
from services.kit.layers import SettingsError
from services.rqp.cast.counts import Counts
from services.rqp.cast.insertion import Inserter, Reservation
from services.rqp.cast.limits import Allowance
from services.rqp.cast.machines import PROTOCOL, Machines
from services.rqp.cast.ports import Port, Ports
from services.rqp.cast.session import Session
from services.rqp.cast.settings import CastSettings, Manners
from services.rqp.service import RqpService
from services.store import Queue, StoreError
from services.store.errors import QueueReserved, QueueUnknown

log = logging.getLogger(__name__)

BATCH = 64  # datagrams read in a row, before others get a turn
DATAGRAM_BYTES = 64  # of a longer one the rest is cut off: it is no question
MAX_JUDGED = 64  # questions that wait for the store at once
FREE_SOON_S = 0.5  # for the session of whoever asks again; well below T_WAIT1
RECEIVE_BUFFER = 1 << 20  # what the kernel keeps of questions meanwhile

# Beside the reasons of the protocol's document.
TOO_MANY_QUESTIONS = "too_many_questions"  # of this address, or of all
TOO_MANY_SESSIONS = "too_many_sessions"  # of this address


@dataclass(slots=True)
class Busy:
    """A queue that a session of this process has, or is about to have."""

    source: str  # who sends
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Questions:
    def __init__(
        self,
        service: RqpService,
        settings: CastSettings,
        machines: Machines,
        counts: Counts,
        *,
        shared: bool,
    ) -> None:
        """shared: other workers hear on the same port. Raises SettingsError if it cannot be had."""
        self._service = service
        self._settings = settings
        self._machines = machines
        self._counts = counts
        self._ports = Ports(settings.host, settings.receiver_range, settings.port_rest_s)
        self._store = service.store
        self._inserter = Inserter(service, settings, counts)
        self._allowance = Allowance(settings.questions_per_second)
        self._sock = _bound(settings.host, settings.request_port, shared)
        self._judged: set[asyncio.Task[None]] = set()
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._busy: dict[str, Busy] = {}  # by the queue's id: which have a session here
        self._of_address: Counter[str] = Counter()  # sessions, and questions that may become some

    @property
    def place(self) -> tuple[str, int]:
        """Where it hears."""
        host, port = self._sock.getsockname()
        return host, port

    @property
    def sessions(self) -> list[Session]:
        """Those that are under way."""
        return list(self._sessions.values())

    @property
    def free_ports(self) -> int:
        """Those of the range that are neither open nor at rest."""
        return self._ports.free

    def start(self) -> None:
        host, port = self.place
        asyncio.get_running_loop().add_reader(self._sock, self._readable)
        fields = {"action": "listening", "listener": "cast", "host": host, "port": port}
        log.info("hearing questions on %s port %d", host, port, extra=fields)

    def stop(self) -> None:
        """Nothing new is answered; sessions go on."""
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()

    async def ended(self) -> None:
        """Returns when the last session has ended: each has its times."""
        while tasks := (*self._judged, *self._sessions):
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Whatever is under way ends now."""
        self.stop()
        await asyncio.sleep(0)  # what has only just begun must have begun, or it would free nothing
        while tasks := (*self._judged, *self._sessions):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self._ports.close()
        await self._inserter.close()

    # what comes

    def _readable(self) -> None:
        for _ in range(BATCH):
            try:
                data, place = self._sock.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                return
            except OSError:  # an answer of the network to something that we sent: none of ours
                continue
            self._came(data, place[0])

    def _came(self, data: bytes, source: str) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._judged) >= MAX_JUDGED or not self._allowance.take(source, now):
            self._counts.unanswered(TOO_MANY_QUESTIONS)
            return
        try:
            question = judge_question(data, source, self._machines.manners(source).trust_address)
        except PeerError as error:
            self._counts.unanswered(error.reason)
            return
        if reason := self._refusal(question, source):
            self._counts.unanswered(reason)
            return
        self._of_address[source] += 1
        task = asyncio.create_task(self._answer(question.key, source))
        self._judged.add(task)
        task.add_done_callback(self._judged.discard)

    def _refusal(self, question: QuestionMsg, source: str) -> str | None:
        """What is known without asking the store."""
        queue = self._store.numbers.held(PROTOCOL, question.key)
        if queue is not None and self._is_another_s(queue, source):
            return Unanswered.RESERVED.value
        if self._ports.free < 2:
            return Unanswered.PORTS_USED_UP.value
        if self._of_address[source] >= self._settings.max_sessions_per_address:
            return TOO_MANY_SESSIONS
        return None

    # what is answered

    async def _answer(self, key: int, source: str) -> None:
        """Begins a session, or counts why there is none."""
        begun: Unanswered | None = Unanswered.UNAVAILABLE
        try:
            begun = await self._begin(key, source)
        except Exception:
            log.exception("a question could not be judged", extra={"action": "cast_question_failed"})
            self._service.metrics.local_errors.inc()
        finally:
            if begun is not None:
                self._counts.unanswered(begun.value)
                self._leave(source)

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
        ports = self._open_ports()
        if ports is None:
            await reserved.free()
            return Unanswered.PORTS_USED_UP
        self._start_session(reserved, ports, key, source)
        return None

    def _open_ports(self) -> tuple[Port, Port] | None:
        first = self._ports.open()
        if first is None:
            return None
        second = self._ports.open()
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


def _bound(host: str, port: int, shared: bool) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise SettingsError([f"cannot hear on {host} UDP port {port}: {error.strerror}"]) from None
    return sock
