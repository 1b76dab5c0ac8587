"""The ordered connection of one process to one domain: one call in flight while the next one is gathered.

A call whose reply was lost is repeated with the same sequence number on a new connection before anything newer, and
the store repeats its reply. So an operation ends in exactly one of three ways: done, refused (nothing was or will be
stored), or OutcomeUnknown after `request_timeout_s` without a reply.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from services.store.model.alarms import DATASET_CHANGED
from services.store.model.clock import Clock
from services.store.model.errors import (
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreUnavailable,
)
from services.store.model.keys import DomainKeys
from services.store.pipeline.flight import Flight
from services.store.pipeline.gate import Gate
from services.store.pipeline.idempotent import Idempotent
from services.store.pipeline.log_verbs import LogVerbs
from services.store.pipeline.messages import Messages
from services.store.pipeline.metering import Timed
from services.store.pipeline.session import Session
from services.store.pipeline.traced import Traced
from services.store.redis.connect import REPLY_TIMEOUT_S, Connector, ask, drop
from services.store.redis.link import explain_here
from services.store.redis.replication import Replication
from services.store.tracing.spans import Recorder
from services.store.tracing.tracing import Tracing

log = logging.getLogger(__name__)

TICK_S = 0.25
PROBE_S = 1.0  # interval of liveness probes on an idle connection
BACKOFF_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
OPEN_TIMEOUT_S = 3.0
FAULT = "internal error in the store pipe: %r"
DISCONNECTED = (RedisError, OSError, asyncio.TimeoutError, EOFError)


@dataclass(frozen=True, slots=True)
class PipeSettings:
    """Time-outs in seconds, and the limit of pending octets."""

    patience_s: float = 2.0  # an unsent operation is refused after this long without a store
    reply_timeout_s: float = 5.0  # without a reply the connection is closed and the call repeated
    call_deadline_s: float = 20.0  # the store refuses to start a call later than this
    request_timeout_s: float = 30.0  # callers are then answered OutcomeUnknown
    max_pending_bytes: int = 64 << 20  # of unanswered records; above it edges stop reading
    question_timeout_s: float = REPLY_TIMEOUT_S  # of a question outside the pipe


class Pipe:
    """A pipe to one domain. `messages`, `idempotent` and `log` have its operations."""

    def __init__(
        self,
        connector: Connector,
        keys: DomainKeys,
        edge: str,
        settings: PipeSettings,
        observe: Callable[[str, int], None],
        dataset_changed: Callable[[str], None],
        recorder: Recorder | None = None,
    ) -> None:
        """Connect nothing yet. recorder: set if this process is traced."""
        self.keys = keys  # the domain's keys in Redis
        # refuses operations while the store is away
        self.gate = gate = Gate(keys, observe, settings.patience_s)
        self.tallies = gate.tallies  # counts by queue
        self.waiting = gate.waiting  # calls that are being gathered
        self._connector = connector
        self._settings = settings
        self._observe = observe
        observer: object = observe
        self._took = observer.took if isinstance(observer, Timed) else None
        self._dataset_changed = dataset_changed
        # translates times of this process and of the store
        self.clock = self.tallies.clock = Clock(observe)
        # None if this process is not traced
        self.tracing = None if recorder is None else Tracing(recorder, self.clock)
        traced = None if self.tracing is None else Traced(self.tracing)
        self.messages = Messages(gate, traced)  # put, take, settle
        self.idempotent = Idempotent(gate, traced)  # commits, and what is done once
        self.log = LogVerbs(gate, traced)  # the log of the text service
        self._session = Session(keys, edge, connector.may_fail_over, observe, self.clock)
        self._flight = Flight(
            self.waiting,
            self._session,
            Replication(connector, keys.epoch),
            settings.call_deadline_s,
            gate.count,
            self.messages.give_back,
        )
        self._wake = asyncio.Event()
        self.waiting.wake = self._wake.set
        self.waiting.max_bytes = settings.max_pending_bytes
        self._connection: AbstractConnection | None = None
        self._was_refused = False  # the server answers, but refuses calls: a full disk, too few replicas
        self._task: asyncio.Task[None] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self.calls = 0  # that were answered

    @property
    def session(self) -> str:
        """The process's session id in the store."""
        return self._session.name

    @property
    def is_asking(self) -> bool:
        """Return True if a call is in flight; operations are then gathered for the next one."""
        return self._flight.call is not None

    @property
    def epoch(self) -> str:
        """'dataset.generation', '' before the store was reached."""
        return self._session.epoch

    # lifecycle

    def start(self) -> None:
        """Connect, and serve operations from now on."""
        self.gate.shut_since = time.monotonic()
        self._task = asyncio.create_task(self._run(), name=f"pipe {self.keys.domain}")
        self._ticker = asyncio.create_task(self._watch(), name=f"pipe watch {self.keys.domain}")

    async def ready(self) -> None:
        """Wait until the session is open. Raises the StoreError that prevents it."""
        deadline = time.monotonic() + self._settings.patience_s + OPEN_TIMEOUT_S
        while self.gate.shut_since is not None:
            if time.monotonic() > deadline:
                raise self.gate.reason
            await asyncio.sleep(0.01)

    @property
    def trouble(self) -> StoreUnavailable | None:
        """Why the store cannot be used now; None if it can, or if the pipe was not started."""
        return None if self.gate.shut_since is None or self._task is None else self.gate.reason

    async def close(self, timeout: float = 5.0) -> None:
        """Finish the operations, within `timeout`, and end the session. Other processes sweep what it still leases."""
        deadline = time.monotonic() + timeout
        while (self._flight.call or self.waiting) and time.monotonic() < deadline:
            if self.gate.shut_since is not None and self._flight.call is None:
                break
            await asyncio.sleep(0.005)
        self.gate.close()
        self._flight.keeps_settles = False
        for task in (self._task, self._ticker):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._end_session()
        if self._flight.call is not None and not self._flight.call.abandoned:
            self._flight.call.fail(OutcomeUnknown())
        for call in self.waiting.all():
            call.fail(StoreUnavailable("this process is stopping"))

    async def _end_session(self) -> None:
        if self._connection is not None and self._session.is_open and self._flight.call is None:
            try:
                async with asyncio.timeout(1.0):
                    await self._session.close(self._connection)
            except DISCONNECTED:
                fields = {"action": "session_left"}
                log.info("closing the session failed; its messages return when it expires", extra=fields)
        await self._disconnect()

    async def _run(self) -> None:
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(OPEN_TIMEOUT_S):
                    await self._open()
                attempt = 0
                await self._serve()
            except (*DISCONNECTED, StoreError) as error:
                self._was_refused = isinstance(error, ResponseError)
                self._lost_connection(await explain_here(error, self._connector))
            except Exception as error:  # a faulty call must not end all later ones
                log.critical(FAULT, error, exc_info=error, extra={"action": "pipe_fault"})
                self._fault()
            await self._disconnect()
            await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            attempt += 1

    async def _serve(self) -> None:
        """Send calls and process their replies while the connection and the session live."""
        connection = self._connection
        assert connection is not None
        flight = self._flight
        if flight.call is not None:
            await flight.send(connection)
        while True:
            if flight.call is None and not await flight.send_next(connection):
                if not self._session.is_open:
                    return
                await self._idle(connection)
                continue
            call = flight.call
            assert call is not None
            try:
                replies = await connection.read_response(disable_decoding=True)
            except ResponseError as error:
                if flight.is_late_too_soon(error):
                    await self._session.measure_clock(connection)
                    await flight.resend(connection)
                else:
                    flight.refused(error)
                    self.gate.open(self.session)
                continue
            self.clock.heard(int(replies.pop()), flight.asked_at)
            self.gate.open(self.session)
            if call.replicas:
                await flight.replicated(connection, call, self._settings.request_timeout_s)
            self.calls += 1
            if self._took is not None:
                self._took(time.monotonic() - flight.first_sent_at)
            if call.in_order:
                call.stop_refused(replies)
            flight.call = None
            try:
                await flight.send_next(connection)  # the store works on it while replies are processed
            finally:
                flight.finish(call, replies)

    async def _idle(self, connection: AbstractConnection) -> None:
        """Wait for an operation. Probe the store meanwhile, as readiness depends on it."""
        self._wake.clear()
        try:
            async with asyncio.timeout(PROBE_S):
                await self._wake.wait()
        except TimeoutError:
            async with asyncio.timeout(self._settings.reply_timeout_s):
                found = await ask(connection, "GET", self.keys.epoch)
            if found != self.epoch.encode():
                raise StoreUnavailable("the store's dataset has changed; connecting again") from None

    def _lost_connection(self, error: StoreError) -> None:
        self.gate.shut(error)
        self._flight.troubled(self.gate.reason)

    def _fault(self) -> None:
        self._observe(StoreFault.reason, 1)
        self._flight.fault()
        self._lost_connection(StoreUnavailable("internal error; see the log of this process"))

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await drop(connection)

    async def _open(self) -> None:
        self._connection = connection = await self._connector.connect(self.keys.epoch)
        self._adopt(await self._session.find_epoch(connection))
        await self._session.attach(connection, must_be_the_same=self._flight.call is not None)
        # after a refusal, only the reply to the call shows that the store accepts calls again
        if self._flight.call is None or not self._was_refused:
            self.gate.open(self.session)

    def _adopt(self, epoch: str) -> None:
        """Switch to the store's epoch. A new generation keeps the session; another dataset ends it."""
        if epoch == self.epoch:
            return
        old, self._session.epoch = self.epoch, epoch
        if old and old.partition(".")[0] != epoch.partition(".")[0]:
            fields = {"action": "dataset_changed", "old": old, "new": epoch}
            log.error("the store has another dataset; operations under way fail", extra=fields)
            self._observe(DATASET_CHANGED, 1)
            self._session.is_open = False
            self._flight.dataset_lost()
        self._dataset_changed(epoch)
        self._flight.encode()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                await self._check_timeouts(time.monotonic())
            except (
                Exception
            ) as error:  # without this task, callers would wait forever for a store that is down
                log.critical(FAULT, error, exc_info=error, extra={"action": "pipe_fault"})
                self._observe(StoreFault.reason, 1)

    async def _check_timeouts(self, now: float) -> None:
        self._give_up_waiting(now)
        if self._flight.call is None:
            return
        self._flight.abandon_after(self._settings.request_timeout_s, now)
        if now - self._flight.sent_at > self._settings.reply_timeout_s and self._connection is not None:
            self._flight.sent_at = now
            await drop(self._connection)

    def _give_up_waiting(self, now: float) -> None:
        """Refuse calls that were certainly not executed, once the store has been unavailable for too long."""
        if self.gate.shut_since is None:
            return
        limit = now - self._settings.patience_s
        self._flight.give_up(self.gate.reason, limit)
        for call in self.waiting.older_than(limit):
            self._flight.refuse(call, self.gate.reason)
