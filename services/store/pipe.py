"""The ordered way from one edge process to one domain: one call in flight, everything else gathers for the next.

A call whose reply was lost is asked again under the same sequence on a new connection, before anything newer; the
store answers again what it answered. So an operation ends in exactly one of three ways: done, refused (nothing was
stored and nothing will be), or OutcomeUnknown after `request_timeout_s` without an answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from services.store.call import Call
from services.store.connect import Connector, ask, drop
from services.store.delivery import Delivery
from services.store.errors import (
    DatasetLost,
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreUnavailable,
    TooLate,
)
from services.store.keys import DomainKeys
from services.store.link import explain
from services.store.operations import Source
from services.store.replication import Replication
from services.store.session import Session
from services.store.verbs import Verbs

log = logging.getLogger(__name__)

TICK_S = 0.25
PROBE_S = 1.0  # an idle connection is asked this often whether it lives
BACKOFF_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
OPEN_TIMEOUT_S = 3.0
DISCONNECTED = (RedisError, OSError, asyncio.TimeoutError, EOFError)


@dataclass(frozen=True, slots=True)
class PipeSettings:
    """How long to wait for what, in seconds, and how much to hold."""

    patience_s: float = 2.0  # an operation not yet sent is refused after this long without a store
    reply_timeout_s: float = 5.0  # silence after which the connection is given up and the call repeated
    call_deadline_s: float = 20.0  # the store refuses to start a call later than this
    request_timeout_s: float = 30.0  # after this the askers are told that the outcome is unknown
    max_pending_bytes: int = 64 << 20  # of records that wait; above it edges stop reading


class Pipe(Verbs):
    """See the module. Verbs are in `Verbs`; this class gets calls to the store and answers back."""

    def __init__(
        self,
        connector: Connector,
        keys: DomainKeys,
        edge: str,
        settings: PipeSettings,
        observe: Callable[[str, int], None],
        dataset_changed: Callable[[str], None],
    ) -> None:
        super().__init__(keys)
        self._connector = connector
        self._settings = settings
        self._observe = observe
        self._dataset_changed = dataset_changed
        self._session = Session(keys, edge, connector.may_fail_over, observe)
        self._replication = Replication(connector, keys.epoch)
        self._in_flight: Call | None = None
        self._wake = asyncio.Event()
        self.waiting.on_first(self._wake.set)
        self.waiting.max_bytes = settings.max_pending_bytes
        self._connection: AbstractConnection | None = None
        self._sent_at = 0.0
        self._down_since: float | None = time.monotonic()
        self._down_reason: StoreError = StoreUnavailable("the store was not reached yet")
        self._task: asyncio.Task[None] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closing = False
        self.calls = 0

    @property
    def session(self) -> str:
        """The id under which the store knows this process."""
        return self._session.name

    @property
    def epoch(self) -> str:
        """'dataset.generation', '' before the store was reached."""
        return self._session.epoch

    def refuses(self) -> StoreError | None:
        """Why an operation would be refused at once: the store has been away for longer than anybody waits."""
        if self._closing:
            return StoreUnavailable("this process is stopping")
        if self._down_since is not None and time.monotonic() - self._down_since > self._settings.patience_s:
            return self._down_reason
        return None

    def count_refusal(self, error: StoreError, number: int = 1) -> None:
        self._observe(error.reason, number)

    # life

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pipe {self.keys.domain}")
        self._ticker = asyncio.create_task(self._watch(), name=f"pipe watch {self.keys.domain}")

    async def ready(self) -> None:
        """Returns when the session is open. Raises the StoreError that keeps it from opening."""
        deadline = time.monotonic() + self._settings.patience_s + OPEN_TIMEOUT_S
        while self._down_since is not None:
            if time.monotonic() > deadline:
                raise self._down_reason
            await asyncio.sleep(0.01)

    @property
    def trouble(self) -> StoreError | None:
        """Why the store cannot be used now, or None."""
        return None if self._down_since is None else self._down_reason

    async def close(self, timeout: float = 5.0) -> None:
        """Finishes what was asked for, then ends the session; what it still holds is swept by the others."""
        deadline = time.monotonic() + timeout
        while (self._in_flight or self.waiting) and time.monotonic() < deadline:
            if self._down_since is not None and self._in_flight is None:
                break
            await asyncio.sleep(0.005)
        self._closing = self._may_refuse = True
        for task in (self._task, self._ticker):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._end_session()
        if self._in_flight is not None and not self._in_flight.abandoned:
            self._in_flight.fail(OutcomeUnknown())
        for call in self.waiting.all():
            call.fail(StoreUnavailable("this process is stopping"))

    async def _end_session(self) -> None:
        if self._connection is not None and self._session.is_open and self._in_flight is None:
            try:
                async with asyncio.timeout(1.0):
                    await self._session.close(self._connection)
            except DISCONNECTED:
                log.info(
                    "the session could not be closed; it will be swept", extra={"action": "session_left"}
                )
        await self._disconnect()

    # the loop

    async def _run(self) -> None:
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(OPEN_TIMEOUT_S):
                    await self._open()
                attempt = 0
                await self._serve()
            except (*DISCONNECTED, StoreError) as error:
                self._lost_connection(explain(error))
            await self._disconnect()
            await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            attempt += 1

    async def _serve(self) -> None:
        """Sends, waits for the reply, hands it out; as long as the connection and the session live."""
        connection = self._connection
        assert connection is not None
        if self._in_flight is not None:
            await self._send(connection, self._in_flight)
        while True:
            if self._in_flight is None and not await self._send_next(connection):
                if not self._session.is_open:
                    return
                await self._idle(connection)
                continue
            call = self._in_flight
            assert call is not None
            try:
                replies = await connection.read_response(disable_decoding=True)
            except ResponseError as error:
                call.uncertain = call.was_uncertain  # this attempt was refused
                self._refused(call, error)
                continue
            if call.replicas:
                await self._replicated(connection, call)
            self._in_flight = None
            try:
                await self._send_next(connection)  # the store works on it while the answers are handed out
            finally:
                self._finish(call, replies)

    async def _idle(self, connection: AbstractConnection) -> None:
        """Waits for something to do; a store that dies meanwhile is noticed all the same, for readiness goes by it."""
        self._wake.clear()
        try:
            async with asyncio.timeout(PROBE_S):
                await self._wake.wait()
        except TimeoutError:
            async with asyncio.timeout(self._settings.reply_timeout_s):
                found = await ask(connection, "GET", self.keys.epoch)
            if found != self.epoch.encode():
                raise StoreUnavailable("the store's data has changed: looking again") from None

    async def _send_next(self, connection: AbstractConnection) -> bool:
        call = self._next_call()
        if call is None:
            return False
        self._in_flight = call
        await self._send(connection, call)
        return True

    async def _send(self, connection: AbstractConnection, call: Call) -> None:
        self._sent_at = time.monotonic()
        call.was_uncertain, call.uncertain = call.uncertain, True  # until an answer says otherwise
        await connection.send_packed_command([hiredis.pack_command(call.command)], check_health=False)

    def _next_call(self) -> Call | None:
        call = self.waiting.next() if self._session.is_open else None
        if call is not None:
            self._encode(call)
        return call

    def _encode(self, call: Call) -> None:
        self._session.encode(call, self._settings.call_deadline_s * 1000)

    def _finish(self, call: Call, replies: list[Any]) -> None:
        self.calls += 1
        self.waiting.answered(call)
        try:
            call.finish(replies)  # of an abandoned call, only what must be given back still listens
        except Exception:
            log.exception("an answer could not be handed out", extra={"action": "store_callback_failed"})

    async def _replicated(self, connection: AbstractConnection, call: Call) -> None:
        """Waits for the replicas; askers that cannot wait any longer are told that the outcome is unknown."""
        self._replication.heard(time.monotonic() - self._sent_at)
        deadline = call.born + self._settings.request_timeout_s
        while (rest := deadline - time.monotonic()) > 0:
            self._sent_at = time.monotonic()
            if await self._replication.has(connection, call.replicas, rest):
                return
        if not call.abandoned:
            call.abandon(self.give_back)

    # faults

    def _refused(self, call: Call, error: ResponseError) -> None:
        """The store answered the call with an error: what that means for it and for the session."""
        text = str(error)
        if text.startswith("LATE"):
            self._drop_call(call, TooLate())
        elif text.startswith("SESSION"):
            self._session.lost()
            self._drop_call(call, StoreUnavailable("the session had been given up; nothing was stored"))
        elif text.startswith(("GAP", "TOOOLD")):
            self._session.rolled_back(call.sequence, text)
            self._drop_call(call, OutcomeUnknown() if call.uncertain else StoreUnavailable())
        elif "user_function" in text or "user_script" in text:
            log.error("a function of the store failed", extra={"action": "store_fault", "detail": text[:500]})
            self._session.forget_last()  # a call that fails inside is not remembered
            self._drop_call(call, StoreFault(text[:200]))
        else:
            raise error  # EPOCH, LOADING, READONLY, MOVED, MISCONF, NOREPLICAS ...: look for the primary and ask again

    def _drop_call(self, call: Call, error: StoreError) -> None:
        self._in_flight = None
        self.waiting.answered(call)
        if not call.abandoned:
            self.count_refusal(error)
        self._fail(call, error)

    def _fail(self, call: Call, error: StoreError) -> None:
        """Tells the askers. Settles that were not carried out are tried again for as long as the leases live."""
        again = not isinstance(error, OutcomeUnknown | StoreFault)
        if again and self._session.is_open and not self._closing:
            self.waiting.take_over_settles(call)
        call.fail(error)

    def _lost_connection(self, error: StoreError) -> None:
        self._may_refuse = True
        if self._down_since is None:
            self._down_since = time.monotonic()
            log.warning("the store is away: %s", error, extra={"action": "store_away"})
        self._down_reason = error if isinstance(error, StoreUnavailable) else StoreUnavailable(str(error))

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await drop(connection)

    # opening

    async def _open(self) -> None:
        self._connection = connection = await self._connector.connect(self.keys.epoch)
        self._adopt(await self._session.find_epoch(connection))
        await self._session.attach(connection, must_be_the_same=self._in_flight is not None)
        if self._down_since is not None:
            log.info("the store is there", extra={"action": "store_there", "session": self.session})
        self._down_since = None
        self._may_refuse = False

    def _adopt(self, epoch: str) -> None:
        """Another generation of the same data goes on with the same session; other data begins anew."""
        if epoch == self.epoch:
            return
        old, self._session.epoch = self.epoch, epoch
        if old and old.partition(".")[0] != epoch.partition(".")[0]:
            log.error(
                "the store holds another dataset",
                extra={"action": "dataset_changed", "old": old, "new": epoch},
            )
            self._session.is_open = False
            if self._in_flight is not None:
                call = self._in_flight
                self._drop_call(call, OutcomeUnknown() if call.uncertain else DatasetLost())
        self._dataset_changed(epoch)
        if self._in_flight is not None:
            self._encode(self._in_flight)

    # time

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self._give_up_waiting(now)
            call = self._in_flight
            if call is None:
                continue
            if now - call.born > self._settings.request_timeout_s and not call.abandoned:
                self.count_refusal(OutcomeUnknown())
                call.abandon(self.give_back)
            if now - self._sent_at > self._settings.reply_timeout_s and self._connection is not None:
                self._sent_at = now
                await drop(self._connection)

    def _give_up_waiting(self, now: float) -> None:
        """Refuses what was never sent, or is known not to have run, once the store has been away for too long."""
        if self._down_since is None:
            return
        limit = now - self._settings.patience_s
        call = self._in_flight
        if call is not None and not call.uncertain and call.born < limit:
            self._session.forget_last()
            self._drop_call(call, self._down_reason)
        for call in self.waiting.older_than(limit):
            self.waiting.answered(call)
            self.count_refusal(self._down_reason)
            self._fail(call, self._down_reason)

    def give_back(self, deliveries: list[Delivery]) -> None:
        """Messages whose asker is gone return at once, unharmed (tmq.md 6.2)."""
        self.release(Source(), deliveries, failed=False)
