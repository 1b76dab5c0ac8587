"""The receiving agent hears questions; those that nothing speaks against are to be answered (rqp_cast.md 3.2, 5.1).

However many datagrams come, little is done for each: one address may ask so often, so many questions wait for the
store at once, and a session needs two of the ports that there are.
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
from services.rqp.cast.settings import CastSettings
from services.rqp.service import RqpService
from services.store.model import Stamps, now

log = logging.getLogger(__name__)

MAX_JUDGED = 64  # questions that wait for the store at once; for a place: see `places`

MAX_FOREIGN = 1000  # addresses that are told in the log

SETTING = ("edges", "rqp", "cast", "request_port")
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
        self._allowance = RateLimit(settings.questions_per_second)
        self._late_s = settings.t_wait1_s
        self._sock = bound(settings.host, settings.request_port, shared)
        self._stamps = Stamps()
        self._judged: set[asyncio.Task[None]] = set()
        self._foreign: set[str] = set()  # addresses that were told in the log

    @property
    def place(self) -> tuple[str, int]:
        """Where it hears."""
        host, port = self._sock.getsockname()
        return host, port

    def start(self) -> None:
        host, port = self.place
        asyncio.get_running_loop().add_reader(self._sock, self._readable)
        fields = {"action": "listening", "listener": "cast", "host": host, "port": port}
        log.info("hearing questions on %s port %d", host, port, extra={**fields, "setting": SETTING})

    @property
    def is_closed(self) -> bool:
        """Whether questions are no longer heard."""
        return self._sock.fileno() < 0

    def stop(self) -> None:
        """Nothing new is answered; sessions go on."""
        if not self.is_closed:
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
        for data, source, age_s in received(self._sock, self._stamps):
            self._came(data, source, age_s)

    def _came(self, data: bytes, source: str, age_s: float) -> None:
        loop_s = asyncio.get_running_loop().time()
        if len(self._judged) - self.sessions.slots.waiting >= MAX_JUDGED or not self._allowance.take(
            source, loop_s
        ):
            self._counts.unanswered(TOO_MANY_QUESTIONS)
            return
        try:
            question = judge_question(data, source, self._machines.manners(source).trust_address)
        except PeerError as error:
            self._counts.unanswered(error.reason)
            if error.reason == Unanswered.FOREIGN_ADDRESS.value:
                self._tell_foreign(source)
            return
        late = Unanswered.LATE.value if age_s > self._late_s else None
        if reason := late or self.sessions.refusal(question.key, source):
            self._counts.unanswered(reason)
            return
        task = asyncio.create_task(self._answer(question.key, source, now() - age_s))
        self._judged.add(task)
        task.add_done_callback(self._judged.discard)

    def _tell_foreign(self, source: str) -> None:
        """Log it once for each address: behind address translation every question of that machine is dropped."""
        if source in self._foreign or len(self._foreign) == MAX_FOREIGN:
            return
        self._foreign.add(source)
        fields = {"action": "cast_foreign_address", "peer": source}
        text = (
            "questions from %s are dropped: they name another address than the one they come from; if it is behind "
            "address translation say trust_address: true for it in edges.rqp.cast"
        )
        log.warning(text, source, extra=fields)

    async def _answer(self, key: int, source: str, came: float) -> None:
        """Begins a session, or counts why there is none. `came`: when it was asked, by `clock.now`."""
        try:
            unanswered = await self.sessions.begin(key, source, came)
        except Exception:
            log.exception("a question could not be judged", extra={"action": "cast_question_failed"})
            self._service.metrics.local_errors.inc()
        else:
            if unanswered is not None:
                self._counts.unanswered(unanswered)
