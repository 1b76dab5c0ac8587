"""Receive questions and answer those that can be served (rqp_cast.md 3.2, 5.1).

The work for each datagram is bounded: by a rate limit per address, by the number of questions that wait for the store,
and by the ports for sessions.
"""

from __future__ import annotations

import asyncio
import logging

from protos.rqp_cast import Unanswered, judge_question
from protos.types import PeerError
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports.datagrams import bound, received
from services.rqp.cast.receiving.rate_limit import RateLimit
from services.rqp.cast.receiving.sessions import Sessions
from services.rqp.service import RqpService
from services.store.model import Stamps, now

log = logging.getLogger(__name__)

MAX_JUDGED = 64  # questions that wait for the store at once; for slots: see `session_slots`
MAX_FOREIGN = 1000  # addresses that are logged

SETTING = ("edges", "rqp", "cast", "request_port")
TOO_MANY_QUESTIONS = "too_many_questions"  # of this address, or of all; beside the reasons of the document


class Questions:
    """The UDP port for questions, and the sessions they begin."""

    def __init__(self, service: RqpService, machines: Machines, counts: Counts) -> None:
        """Raise SettingsError if the port is not available."""
        settings = service.settings.cast
        self._service = service
        self._machines = machines
        self._counts = counts
        self.sessions = Sessions(service, machines, counts)
        self._rate_limit = RateLimit(settings.questions_per_second)
        self._late_s = settings.t_wait1_s
        self._sock = bound(settings.host, settings.request_port, shared=service.settings.workers > 1)
        self._stamps = Stamps()
        self._judged: set[asyncio.Task[None]] = set()
        self._foreign: set[str] = set()  # logged addresses

    @property
    def place(self) -> tuple[str, int]:
        """Its address and port."""
        host, port = self._sock.getsockname()
        return host, port

    def start(self) -> None:
        """Begin to answer questions."""
        host, port = self.place
        asyncio.get_running_loop().add_reader(self._sock, self._readable)
        fields = {"action": "listening", "listener": "cast", "host": host, "port": port}
        log.info("listening on %s UDP port %d", host, port, extra={**fields, "setting": SETTING})

    @property
    def is_closed(self) -> bool:
        """Return True if questions are no longer received."""
        return self._sock.fileno() < 0

    def stop(self) -> None:
        """Answer no more questions; sessions go on."""
        if not self.is_closed:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()

    async def ended(self) -> None:
        """Wait until the last session has ended; its timeouts bound it."""
        while tasks := (*self._judged, *self.sessions.tasks):
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """End all sessions now."""
        self.stop()
        while self._judged:
            for task in self._judged:
                task.cancel()
            await asyncio.wait(tuple(self._judged))
        await self.sessions.close()

    def _readable(self) -> None:
        for data, source, age_s in received(self._sock, self._stamps):
            self._received(data, source, age_s)

    def _received(self, data: bytes, source: str, age_s: float) -> None:
        loop_s = asyncio.get_running_loop().time()
        is_busy = len(self._judged) - self.sessions.slots.waiting >= MAX_JUDGED
        if is_busy or not self._rate_limit.take(source, loop_s):
            self._counts.unanswered(TOO_MANY_QUESTIONS)
            return
        try:
            question = judge_question(data, source, self._machines.options(source).trust_address)
        except PeerError as error:
            self._counts.unanswered(error.reason)
            if error.reason == Unanswered.FOREIGN_ADDRESS.value:
                self._warn_foreign(source)
            return
        late = Unanswered.LATE.value if age_s > self._late_s else None
        if reason := late or self.sessions.refusal(question.key, source):
            self._counts.unanswered(reason)
            return
        task = asyncio.create_task(self._answer(question.key, source, now() - age_s))
        self._judged.add(task)
        task.add_done_callback(self._judged.discard)

    def _warn_foreign(self, source: str) -> None:
        """Log each address once: behind address translation, every question of that machine is dropped."""
        if source in self._foreign or len(self._foreign) == MAX_FOREIGN:
            return
        self._foreign.add(source)
        fields = {"action": "cast_foreign_address", "peer": source}
        text = (
            "questions from %s are dropped: they name another address than the one they come from; if the machine is "
            "behind address translation, set trust_address: true for it in edges.rqp.cast"
        )
        log.warning(text, source, extra=fields)

    async def _answer(self, key: int, source: str, came: float) -> None:
        """Begin a session, or count the reason for a refusal. `came`: when it was asked, by `clock.now`."""
        try:
            unanswered = await self.sessions.begin(key, source, came)
        except Exception:
            log.exception("internal error, question dropped", extra={"action": "cast_question_failed"})
            self._service.metrics.local_errors.inc()
        else:
            if unanswered is not None:
                self._counts.unanswered(unanswered)
