"""The call in flight to a domain, and its outcome: done, refused or unknown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from services.store.model.clock import now
from services.store.model.delivery import Delivery
from services.store.model.errors import (
    DatasetLost,
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreUnavailable,
    TooLate,
)
from services.store.model.names import encode_name
from services.store.pipeline.call import Call
from services.store.pipeline.session import Session
from services.store.pipeline.waiting import Waiting
from services.store.redis.replication import Replication

log = logging.getLogger(__name__)

MOST_REPEATS = 3  # of a call that the store refuses as late before its deadline, while its clock runs away


class Flight:
    """The call in flight. A call that is repeated after a lost reply keeps its sequence number."""

    def __init__(
        self,
        waiting: Waiting,
        session: Session,
        replication: Replication,
        deadline_s: float,
        count: Callable[[StoreError], None],
        give_back: Callable[[list[Delivery]], None],
    ) -> None:
        self.call: Call | None = None
        self.first_sent_at = 0.0  # when the call was first sent
        self.sent_at = 0.0  # when a command was last sent to the store
        self.asked_at = 0.0  # when the call was last sent, by the boot clock
        self.keeps_settles = True  # False: nothing more will be sent
        self._waiting = waiting
        self._session = session
        self._replication = replication
        self._deadline_ms = deadline_s * 1000
        self._due = 0.0  # the call's deadline, by the boot clock
        self._repeats = 0  # under new sequence numbers
        self._before = 0  # sequence number of the previous call
        self._count = count
        self._give_back = give_back

    async def send_next(self, connection: AbstractConnection) -> bool:
        """Send the oldest waiting call; return False if no call waits."""
        self.call = self._waiting.next() if self._session.is_open else None
        if self.call is None:
            return False
        self._before = self._session.sequence
        if self.call.in_order:
            self.call.skip_stopped()
        self.encode()
        self.first_sent_at = time.monotonic()
        await self.send(connection)
        return True

    def encode(self) -> None:
        """Encode the call in flight, if any, for the session's epoch."""
        if self.call is not None:
            self._due, self._repeats = now() + self._deadline_ms / 1000, 0
            self._session.encode(self.call, self._deadline_ms)

    async def send(self, connection: AbstractConnection) -> None:
        """Send the call in flight, also as a repeat on a new connection."""
        call = self.call
        assert call is not None
        packed = _pack(call.command)
        self.sent_at, self.asked_at = time.monotonic(), now()
        call.was_uncertain, call.uncertain = call.uncertain, True  # until an answer says otherwise
        await connection.send_packed_command([packed], check_health=False)

    def finish(self, call: Call, replies: list[Any]) -> None:
        """Answer the callers of a call that is no longer in flight."""
        self._waiting.answered(call)
        try:
            call.finish(replies)
        except Exception:
            log.exception("internal error in a reply handler", extra={"action": "store_callback_failed"})

    async def replicated(self, connection: AbstractConnection, call: Call, patience_s: float) -> None:
        """Wait for the replicas; after `patience_s` answer the callers OutcomeUnknown."""
        self._replication.heard(time.monotonic() - self.sent_at)
        while (rest := call.created_at + patience_s - time.monotonic()) > 0:
            self.sent_at = time.monotonic()
            if await self._replication.has(connection, call.replicas, rest):
                return
        if not call.abandoned:
            call.abandon(self._give_back)

    def abandon_after(self, patience_s: float, now: float) -> None:
        """Answer the callers OutcomeUnknown if the call is older than `patience_s`."""
        call = self.call
        if call is not None and now - call.created_at > patience_s and not call.abandoned:
            self._count(OutcomeUnknown())
            call.abandon(self._give_back)

    def is_late_too_soon(self, error: ResponseError) -> bool:
        """Return whether the store refuses a call as late before its deadline: its clock was stepped."""
        call = self.call
        assert call is not None
        early = now() < self._due and self._repeats < MOST_REPEATS
        return early and not call.abandoned and str(error).startswith("LATE")

    async def resend(self, connection: AbstractConnection) -> None:
        """Resend a call that was refused as late, under a new sequence number and with the same deadline."""
        call = self.call
        assert call is not None
        self._before = self._session.sequence
        call.sequence, call.uncertain = 0, False
        self._repeats += 1
        self._session.encode(call, (self._due - now()) * 1000)
        await self.send(connection)

    def refused(self, error: ResponseError) -> None:
        """Handle an error reply to the call.

        Re-raises errors that are not about the call: the connection is then made anew, perhaps to another server.
        """
        call, text = self.call, str(error)
        assert call is not None
        call.uncertain = call.was_uncertain  # this attempt was not executed
        if text.startswith("LATE"):
            self.drop(_late(call.trouble))
        elif text.startswith("SESSION"):
            self._session.lost()
            self.drop(StoreUnavailable("the session had expired; nothing was stored: try again"))
        elif text.startswith(("GAP", "TOOOLD")):
            self._session.rolled_back(call.sequence, text)
            self.drop(OutcomeUnknown() if call.uncertain else StoreUnavailable())
        elif "user_function" in text or "user_script" in text:
            log.error("a store function failed", extra={"action": "store_fault", "detail": text[:500]})
            self._session.forget_last()  # the store keeps no record of a call whose function fails
            self.drop(StoreFault(text[:200]))
        else:
            raise error  # EPOCH, LOADING, READONLY, MOVED, MISCONF, NOREPLICAS ...: find the primary and repeat

    def troubled(self, error: StoreUnavailable) -> None:
        """Remember why the call must be repeated: the error to report if it then comes too late."""
        if self.call is not None:
            self.call.trouble = error

    def dataset_lost(self) -> None:
        """Fail the call: the store has another dataset now."""
        if self.call is not None:
            self.drop(OutcomeUnknown() if self.call.uncertain else DatasetLost())

    def give_up(self, reason: StoreError, created_before: float) -> None:
        """Refuse the call if it is older and certainly was not executed."""
        if self.call is not None and not self.call.uncertain and self.call.created_at < created_before:
            self._session.forget_last()
            self.drop(reason)

    def fault(self) -> None:
        """Fail the call after an internal error, and go on with the next one.

        A call that was sent may have been executed under an unknown sequence number, so the session is given up. The
        settles of one that was not sent are retried once with the next call.
        """
        call, self.call = self.call, None
        if call is None:
            return
        error: StoreError = StoreFault("internal error; see the log of this process")
        if call.uncertain:
            self._session.lost()
            error = OutcomeUnknown()
        else:
            self._session.sequence = self._before
        try:
            if not call.uncertain and not call.has_moved and self._session.is_open and self.keeps_settles:
                self._waiting.take_over_settles(call, once=True)
            self.refuse(call, error)
        except Exception:
            log.exception("internal error in a reply handler", extra={"action": "store_callback_failed"})

    def drop(self, error: StoreError) -> None:
        """Refuse the call in flight."""
        call, self.call = self.call, None
        assert call is not None
        self.refuse(call, error)

    def refuse(self, call: Call, error: StoreError) -> None:
        """Answer the callers of a call. Settles that were not executed are retried while the session lives."""
        self._waiting.answered(call)
        if not call.abandoned:
            self._count(error)
        again = not isinstance(error, OutcomeUnknown | StoreFault)
        if again and self._session.is_open and self.keeps_settles:
            self._waiting.take_over_settles(call)
        call.fail(error)


def _late(trouble: StoreUnavailable | None) -> StoreUnavailable:
    """Return why a call came too late. A disk error is reported as itself, as waiting does not help."""
    if trouble is None or trouble.names_disk:
        return trouble or TooLate()
    return TooLate(f"{TooLate.message} ({trouble})")


def _pack(command: tuple[Any, ...]) -> bytes:
    """Encode a command. Names may be any octets (surrogateescape), not only UTF-8."""
    try:
        packed: bytes = hiredis.pack_command(command)
    except UnicodeEncodeError:
        octets: list[Any] = [encode_name(part) if isinstance(part, str) else part for part in command]
        packed = hiredis.pack_command(tuple(octets))
    return packed
