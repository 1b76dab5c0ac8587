"""The receiving agent hears questions; those that nothing speaks against are to be answered (rqp_cast.md 3.2, 5.1).

However many datagrams come, little is done for each: one address may ask so often, so many questions wait for the
store at once, and a session needs two of the ports that there are.
"""

from __future__ import annotations

import asyncio
import logging
import socket

from protos.rqp_cast import judge_question
from protos.types import PeerError
from services.kit.layers import SettingsError
from services.rqp.cast.counts import Counts
from services.rqp.cast.limits import Allowance
from services.rqp.cast.machines import Machines
from services.rqp.cast.sessions import Sessions
from services.rqp.cast.settings import CastSettings
from services.rqp.service import RqpService

log = logging.getLogger(__name__)

BATCH = 64  # datagrams read in a row, before others get a turn
DATAGRAM_BYTES = 64  # of a longer one the rest is cut off: it is no question
MAX_JUDGED = 64  # questions that wait for the store at once
RECEIVE_BUFFER = 1 << 20  # what the kernel keeps of questions meanwhile

TOO_MANY_QUESTIONS = "too_many_questions"  # of this address, or of all; beside the reasons of the document


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
        self._machines = machines
        self._counts = counts
        self.sessions = Sessions(service, settings, machines, counts)
        self._allowance = Allowance(settings.questions_per_second)
        self._sock = _bound(settings.host, settings.request_port, shared)
        self._judged: set[asyncio.Task[None]] = set()

    @property
    def place(self) -> tuple[str, int]:
        """Where it hears."""
        host, port = self._sock.getsockname()
        return host, port

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
        while tasks := (*self._judged, *self.sessions.tasks):
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Whatever is under way ends now."""
        self.stop()
        while self._judged:
            for task in self._judged:
                task.cancel()
            await asyncio.wait(tuple(self._judged))
        await self.sessions.close()

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
        if reason := self.sessions.admit(question.key, source):
            self._counts.unanswered(reason)
            return
        task = asyncio.create_task(self._answer(question.key, source))
        self._judged.add(task)
        task.add_done_callback(self._judged.discard)

    async def _answer(self, key: int, source: str) -> None:
        """Begins a session, or counts why there is none."""
        try:
            unanswered = await self.sessions.begin(key, source)
        except Exception:
            log.exception("a question could not be judged", extra={"action": "cast_question_failed"})
            self._service.metrics.local_errors.inc()
        else:
            if unanswered is not None:
                self._counts.unanswered(unanswered.value)


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
