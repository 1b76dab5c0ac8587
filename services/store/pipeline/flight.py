"""The one call that is on its way to a domain, and what becomes of it: done, refused, or of unknown outcome."""

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

MOST_REPEATS = 3  # of a call for which the store is too late too soon: its clock runs away


class Flight:
    """Sends, hands the replies out, or says why there are none. A repeat goes under the old sequence."""

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
        self.took_off_at = 0.0  # when the call was first sent
        self.sent_at = 0.0  # when something was last asked of the store
        self.asked_at = 0.0  # when the call was last sent, by the boot clock
        self.keeps_settles = True  # False: nothing will be sent any more
        self._waiting = waiting
        self._session = session
        self._replication = replication
        self._deadline_ms = deadline_s * 1000
        self._due = 0.0  # its deadline, by the boot clock
        self._repeats = 0  # under new numbers
        self._before = 0  # the number of the call before this one
        self._count = count
        self._give_back = give_back

    # there

    async def take_off(self, connection: AbstractConnection) -> bool:
        """Sends the oldest call that waits; False if there is none."""
        self.call = self._waiting.next() if self._session.is_open else None
        if self.call is None:
            return False
        self._before = self._session.sequence
        if self.call.in_order:
            self.call.leave_out_stopped()
        self.encode()
        self.took_off_at = time.monotonic()
        await self.send(connection)
        return True

    def encode(self) -> None:
        if self.call is not None:
            self._due, self._repeats = now() + self._deadline_ms / 1000, 0
            self._session.encode(self.call, self._deadline_ms)

    async def send(self, connection: AbstractConnection) -> None:
        """Also once more, on another connection."""
        call = self.call
        assert call is not None
        packed = _pack(call.command)
        self.sent_at, self.asked_at = time.monotonic(), now()
        call.was_uncertain, call.uncertain = call.uncertain, True  # until an answer says otherwise
        await connection.send_packed_command([packed], check_health=False)

    # and back

    def land(self, call: Call, replies: list[Any]) -> None:
        self._waiting.answered(call)
        try:
            call.finish(replies)  # of an abandoned call, only what must be given back still listens
        except Exception:
            log.exception("an answer could not be handed out", extra={"action": "store_callback_failed"})

    async def replicated(self, connection: AbstractConnection, call: Call, patience_s: float) -> None:
        """Waits for the replicas; askers that cannot wait any longer are told that the outcome is unknown."""
        self._replication.heard(time.monotonic() - self.sent_at)
        while (rest := call.born + patience_s - time.monotonic()) > 0:
            self.sent_at = time.monotonic()
            if await self._replication.has(connection, call.replicas, rest):
                return
        if not call.abandoned:
            call.abandon(self._give_back)

    def abandon_after(self, patience_s: float, now: float) -> None:
        """Tells the askers that the outcome is unknown, once they have waited long enough."""
        call = self.call
        if call is not None and now - call.born > patience_s and not call.abandoned:
            self._count(OutcomeUnknown())
            call.abandon(self._give_back)

    def is_late_too_soon(self, error: ResponseError) -> bool:
        """Whether the store refuses the call for a deadline that has not passed here: its clock was stepped."""
        call = self.call
        assert call is not None
        early = now() < self._due and self._repeats < MOST_REPEATS
        return early and not call.abandoned and str(error).startswith("LATE")

    async def ask_anew(self, connection: AbstractConnection) -> None:
        """Send a call that was refused for lateness once more, under a new number: the old one stays refused.

        Its deadline stays the same.
        """
        call = self.call
        assert call is not None
        self._before = self._session.sequence
        call.sequence, call.uncertain = 0, False
        self._repeats += 1
        self._session.encode(call, (self._due - now()) * 1000)
        await self.send(connection)

    # or not

    def refused(self, error: ResponseError) -> None:
        """The store answered with an error: what that means for the call and for the session.

        Raises it again where it says nothing about the call: another server may be the one to ask.
        """
        call, text = self.call, str(error)
        assert call is not None
        call.uncertain = call.was_uncertain  # this attempt was refused
        if text.startswith("LATE"):
            self.drop(_late(call.trouble))
        elif text.startswith("SESSION"):
            self._session.lost()
            self.drop(StoreUnavailable("the session had been given up; nothing was stored"))
        elif text.startswith(("GAP", "TOOOLD")):
            self._session.rolled_back(call.sequence, text)
            self.drop(OutcomeUnknown() if call.uncertain else StoreUnavailable())
        elif "user_function" in text or "user_script" in text:
            log.error("a function of the store failed", extra={"action": "store_fault", "detail": text[:500]})
            self._session.forget_last()  # a call that fails inside is not remembered
            self.drop(StoreFault(text[:200]))
        else:
            raise error  # EPOCH, LOADING, READONLY, MOVED, MISCONF, NOREPLICAS ...: look for the primary and ask again

    def troubled(self, error: StoreUnavailable) -> None:
        """The call will be sent once more; if it comes too late then, this is why."""
        if self.call is not None:
            self.call.trouble = error

    def dataset_lost(self) -> None:
        """There is other data now: what was asked of the old cannot be learnt."""
        if self.call is not None:
            self.drop(OutcomeUnknown() if self.call.uncertain else DatasetLost())

    def give_up(self, reason: StoreError, born_before: float) -> None:
        """A call that is known not to have run is refused, if it has waited for too long."""
        if self.call is not None and not self.call.uncertain and self.call.born < born_before:
            self._session.forget_last()
            self.drop(reason)

    def fault(self) -> None:
        """Something of ours failed over the call: its askers are told, and what waits behind it is served.

        What was sent may have been done, and the store's number of it cannot be known: the session is given up. Of what
        was not, the settles are others' perhaps, who did nothing wrong: they go once more, with the next call.
        """
        call, self.call = self.call, None
        if call is None:
            return
        error: StoreError = StoreFault("a fault of our own: the log says more")
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
            log.exception("nobody could be told", extra={"action": "store_callback_failed"})

    def drop(self, error: StoreError) -> None:
        call, self.call = self.call, None
        assert call is not None
        self.refuse(call, error)

    def refuse(self, call: Call, error: StoreError) -> None:
        """Tells the askers. Settles that were not carried out are tried again for as long as the leases live."""
        self._waiting.answered(call)
        if not call.abandoned:
            self._count(error)
        again = not isinstance(error, OutcomeUnknown | StoreFault)
        if again and self._session.is_open and self.keeps_settles:
            self._waiting.take_over_settles(call)
        call.fail(error)


def _late(trouble: StoreUnavailable | None) -> StoreUnavailable:
    """Why a call came too late: the disk's fault is not a matter of time."""
    if trouble is None or trouble.names_disk:
        return trouble or TooLate()
    return TooLate(f"{TooLate.message} ({trouble})")


def _pack(command: tuple[Any, ...]) -> bytes:
    """Text of any octets (surrogateescape) as those: names, and what strangers are called, need not be UTF-8."""
    try:
        packed: bytes = hiredis.pack_command(command)
    except UnicodeEncodeError:
        octets: list[Any] = [encode_name(part) if isinstance(part, str) else part for part in command]
        packed = hiredis.pack_command(tuple(octets))
    return packed
