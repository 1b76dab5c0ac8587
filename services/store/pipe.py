"""The ordered way from one edge process to one domain: one call in flight, everything else gathers for the next.

A call whose reply was lost is asked again under the same sequence on a new connection, before anything newer; the
store answers again what it answered. So an operation ends in exactly one of three ways: done, refused (nothing was
stored and nothing will be), or OutcomeUnknown after `request_timeout_s` without an answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from services.store.call import Call
from services.store.connect import Connector, drop
from services.store.delivery import Delivery
from services.store.errors import (
    DatasetLost,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreUnavailable,
    TooLate,
)
from services.store.keys import DomainKeys
from services.store.link import explain
from services.store.operations import Source
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


def session_name(edge: str) -> str:
    """A session id nobody else has; it stands in logs, so it says who it is."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{edge}-{host}-{os.getpid()}-{secrets.token_hex(4)}"


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
        self._edge = edge
        self._settings = settings
        self._observe = observe
        self._dataset_changed = dataset_changed
        self.session = session_name(edge)
        self.epoch = ""
        self._sequence = 0
        self._session_open = False
        self._in_flight: Call | None = None
        self._full: deque[Call] = deque()
        self._wake = asyncio.Event()
        self._connection: AbstractConnection | None = None
        self._sent_at = 0.0
        self._down_since: float | None = time.monotonic()
        self._down_reason: StoreError = StoreUnavailable("the store was not reached yet")
        self._server_offset_ms = 0.0
        self._task: asyncio.Task[None] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closing = False
        self._rolled_back = False
        self._replication = ""  # the primary's replication id, where another may take its place
        self._clear_waiters: list[Callable[[], None]] = []
        self.calls = 0

    # gathering

    def _call_for(self, messages: int, size: int, wanted: int, queues: int = 1, settles: int = 0) -> Call:
        call = self._gathering
        if not call.has_room(messages, size, wanted, queues, settles):
            self._full.append(call)
            call = self._gathering = Call(self.keys, self.count_refusal)
        if not call.rounds:
            call.born = time.monotonic()
            self._wake.set()
        call.messages += messages
        call.bytes += size
        call.wanted += wanted
        call.settles += settles
        self.pending_bytes += size
        return call

    def refuses(self) -> StoreError | None:
        """Why an operation would be refused at once: the store has been away for longer than anybody waits."""
        if self._closing:
            return StoreUnavailable("this process is stopping")
        if self._down_since is not None and time.monotonic() - self._down_since > self._settings.patience_s:
            return self._down_reason
        return None

    @property
    def congested(self) -> bool:
        return self.pending_bytes > self._settings.max_pending_bytes

    def when_clear(self, resume: Callable[[], None]) -> None:
        """Calls back once, when there is room again."""
        self._clear_waiters.append(resume)

    def _settled(self, call: Call) -> None:
        self.pending_bytes -= call.bytes
        if self._clear_waiters and self.pending_bytes <= self._settings.max_pending_bytes // 2:
            waiters, self._clear_waiters = self._clear_waiters, []
            for resume in waiters:
                resume()

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
        while (self._in_flight or self._full or self._gathering.rounds) and time.monotonic() < deadline:
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
        for call in (*self._full, self._gathering):
            call.fail(StoreUnavailable("this process is stopping"))
        self._full.clear()
        self._gathering = Call(self.keys, self.count_refusal)

    async def _end_session(self) -> None:
        if self._connection is not None and self._session_open and self._in_flight is None:
            try:
                async with asyncio.timeout(1.0):
                    await self._ask(self._connection, *self._session_command("close"))
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
                if not self._session_open:
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
            if call.replicas and not await self._replicated(connection, call):
                call.abandon(self.give_back)
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
                await self._ask(connection, "PING")

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
        if not self._session_open:
            return None
        if self._full:
            call = self._full.popleft()
        elif self._gathering.rounds:
            call, self._gathering = self._gathering, Call(self.keys, self.count_refusal)
        else:
            return None
        self._sequence += 1
        self._encode(call)
        return call

    def _encode(self, call: Call) -> None:
        deadline = self.server_ms() + self._settings.call_deadline_s * 1000
        call.handlers.clear()
        call.encode(self.epoch, self.session, call.sequence or self._sequence, int(deadline))

    def server_ms(self) -> float:
        """The store's clock, as far as it is known."""
        return time.monotonic() * 1000 + self._server_offset_ms

    def _finish(self, call: Call, replies: list[Any]) -> None:
        self.calls += 1
        self._settled(call)
        try:
            call.finish(replies)  # of an abandoned call, only what must be given back still listens
        except Exception:
            log.exception("an answer could not be handed out", extra={"action": "store_callback_failed"})

    async def _replicated(self, connection: AbstractConnection, call: Call) -> bool:
        """Whether enough replicas have it; a shortfall is asked about again until nobody waits any more."""
        while True:
            rest = call.born + self._settings.request_timeout_s - time.monotonic()
            if rest <= 0:
                return False
            self._sent_at = time.monotonic()
            wait_ms = int(min(rest, 1.0) * 1000)
            if await self._ask(connection, "WAIT", call.replicas, wait_ms) >= call.replicas:
                return True

    # faults

    def _refused(self, call: Call, error: ResponseError) -> None:
        """The store answered the call with an error: what that means for it and for the session."""
        text = str(error)
        if text.startswith("LATE"):
            self._drop_call(call, TooLate())
        elif text.startswith("SESSION"):
            self._session_lost()
            self._drop_call(call, StoreUnavailable("the session had been given up; nothing was stored"))
        elif text.startswith(("GAP", "TOOOLD")):
            log.error(
                "the store lost what it had acknowledged",
                extra={
                    "action": "store_rolled_back",
                    "session": self.session,
                    "detail": text,
                    "sequence": call.sequence,
                },
            )
            self._observe("store_rolled_back", 1)
            self._rolled_back = True
            self._session_lost()
            self._drop_call(call, OutcomeUnknown() if call.uncertain else StoreUnavailable())
        elif "user_function" in text or "user_script" in text:
            log.error("a function of the store failed", extra={"action": "store_fault", "detail": text[:500]})
            self._sequence -= 1  # a call that fails inside is not remembered
            self._drop_call(call, StoreFault(text[:200]))
        else:
            raise error  # EPOCH, LOADING, READONLY, MOVED, MISCONF, NOREPLICAS ...: look for the primary and ask again

    def _drop_call(self, call: Call, error: StoreError) -> None:
        self._in_flight = None
        self._settled(call)
        if not call.abandoned:
            self.count_refusal(error)
        self._fail(call, error)

    def _fail(self, call: Call, error: StoreError) -> None:
        """Tells the askers. Settles that were not carried out are tried again for as long as the leases live."""
        again = not isinstance(error, OutcomeUnknown | StoreFault)
        if again and self._session_open and not self._closing:
            if not self._gathering.rounds:
                self._gathering.born = time.monotonic()
            call.move_settles(self._gathering)
            self._wake.set()
        call.fail(error)

    def _session_lost(self) -> None:
        """Everything leased under it is lost; a new session begins."""
        log.warning("session lost", extra={"action": "session_lost", "session": self.session})
        self._session_open = False

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

    async def _ask(self, connection: AbstractConnection, *command: Any) -> Any:
        await connection.send_packed_command(connection.pack_command(*command), check_health=False)
        return await connection.read_response(disable_decoding=True)

    def _session_command(self, mode: str) -> tuple[Any, ...]:
        keys = [self.keys.epoch, self.keys.sessions, self.keys.lane(self.session)]
        keys += [self.keys.dying, self.keys.lots(self.session)]
        return ("FCALL", "ps1_session", len(keys), *keys, self.epoch, self.session, mode)

    async def _open(self) -> None:
        self._connection = connection = await self._connector.connect(self.keys.epoch)
        found = await self._ask(connection, "GET", self.keys.epoch)
        if found is None:
            raise DatasetLost() if self.epoch else NotInitialised()
        self._adopt(await self._generation(connection, found.decode()))
        if self._in_flight is None and not self._session_open:
            self.session = session_name(self._edge)
            self._sequence = 0
            await self._session(connection, "open")
            self._session_open = True
        elif self._in_flight is None:
            try:
                await self._session(connection, "beat")
            except ResponseError as error:
                if not str(error).startswith("SESSION"):
                    raise
                self._session_lost()
                raise
        if self._down_since is not None:
            log.info("the store is there", extra={"action": "store_there", "session": self.session})
        self._down_since = None
        self._may_refuse = False

    async def _generation(self, connection: AbstractConnection, epoch: str) -> str:
        """A store that lost something, or a new primary that may have, goes on in a new generation of entry ids."""
        replication = ""
        if self._connector.may_fail_over:
            info = (await self._ask(connection, "INFO", "replication")).decode()
            replication = info.partition("master_replid:")[2].partition("\r\n")[0]
        moved = bool(self._replication and replication != self._replication)
        self._replication = replication
        if not (self._rolled_back or moved) or epoch.partition(".")[0] != self.epoch.partition(".")[0]:
            return epoch
        dataset, _, generation = self.epoch.partition(".")
        newer = f"{dataset}.{int(generation) + 1}"
        log.error(
            "a new generation begins", extra={"action": "new_generation", "old": self.epoch, "new": newer}
        )
        self._observe("new_generation", 1)
        self._rolled_back = False
        if epoch != self.epoch:
            return epoch  # somebody else was faster
        try:
            await self._ask(connection, "FCALL", "ps1_set_epoch", 1, self.keys.epoch, epoch, newer)
        except ResponseError as error:
            if not str(error).startswith("EPOCH"):
                raise
            newer = (await self._ask(connection, "GET", self.keys.epoch)).decode()
        return newer

    async def _session(self, connection: AbstractConnection, mode: str) -> None:
        sent = time.monotonic() * 1000
        self._server_offset_ms = float(await self._ask(connection, *self._session_command(mode))) - sent

    def _adopt(self, epoch: str) -> None:
        """Another generation of the same data goes on with the same session; other data begins anew."""
        if epoch == self.epoch:
            return
        old, self.epoch = self.epoch, epoch
        if old and old.partition(".")[0] != epoch.partition(".")[0]:
            log.error(
                "the store holds another dataset",
                extra={"action": "dataset_changed", "old": old, "new": epoch},
            )
            self._session_open = False
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
            self._sequence -= 1
            self._drop_call(call, self._down_reason)
        while self._full and self._full[0].born < limit:
            self._refuse_waiting(self._full.popleft())
        if self._gathering.rounds and self._gathering.born < limit and not self._gathering.only_settles():
            waiting, self._gathering = self._gathering, Call(self.keys, self.count_refusal)
            self._refuse_waiting(waiting)

    def _refuse_waiting(self, call: Call) -> None:
        self._settled(call)
        self.count_refusal(self._down_reason)
        self._fail(call, self._down_reason)

    def give_back(self, deliveries: list[Delivery]) -> None:
        """Messages whose asker is gone return at once, unharmed (tmq.md 6.2)."""
        self.release(Source(), deliveries, failed=False)
