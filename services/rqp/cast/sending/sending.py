"""The sending agent of one transmission queue, as long as this process owns it (rqp_cast.md 4)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from protos.rqp_cast import (
    Bury,
    Hold,
    Kept,
    MoveToEnd,
    PutBack,
    Remove,
    Sender,
    SenderState,
    Why,
)
from services.rqp.cast.hops import hop_of
from services.rqp.cast.machines.machines import PROTOCOL
from services.rqp.cast.sending.attempt import Attempt, Fate, Load, Means
from services.rqp.cast.sending.line import Line
from services.rqp.cast.sending.stock import Ids, Message, Stock
from services.rqp.condition import Condition
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import LeaseLost, now
from services.store.pipeline import answered
from services.store.tracing import Leaving

log = logging.getLogger(__name__)

AGAIN_S = 0.5  # after a fault of the store
NO_PORT = "no_port"  # nothing has failed, but nothing can begin
LOCAL_ERROR = "local_error"  # what nobody thought of
HELD = "held"  # the reason of dead letters that an operator is to look into (4.2)
GONE_S = 2.0  # for the store to take back what is given back, at the end


@dataclass(slots=True)
class Shared:
    """What the sending agents of all queues of a process share."""

    service: RqpService
    means: Means
    ids: Ids
    line: Line = field(default_factory=Line)


class CastSending:
    """Begins at once; `close` is its end."""

    def __init__(self, shared: Shared, queue: Queue, condition: Condition) -> None:
        remote = queue.spec.remote
        assert remote is not None
        self._shared = shared
        self._queue = queue
        self._condition = condition
        self._key = remote.number
        self._peers = tuple(remote.peers)
        self._pipe = shared.service.pipe(queue)
        self._source = Source(INTERNAL_CLIENT)
        self._ports = shared.means.settings.sender_ports
        self._machine = Sender(self._key, shared.means.settings.sender())
        self._stock = Stock(shared.service, queue, shared.ids, shared.means.asker.address)
        self._stock.on_empty = self._emptied
        self._attempt: Attempt | None = None
        self._current: Message | None = None  # what is being sent, until its fate is carried out
        self._trouble = ""  # of the last attempt
        self._receiver = ""  # of the last attempt, also where its message is bound to none
        self._stopping = False
        self._task = asyncio.create_task(self._run(), name=f"rqp cast {queue.name!r}")

    async def close(self, *, lost: bool) -> None:
        """What has left may still be confirmed, unless the queue is lost; the rest goes back."""
        self._stopping = True
        if lost or self._attempt is None or not self._attempt.is_out:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._give_back()
        if not lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GONE_S):
                    await self._stock.is_quiet()

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._send_next()
            except StoreError as error:
                log.info(
                    "nothing is sent: %s", error, extra={"action": "cast_waits", "queue": self._queue.name}
                )
                self._give_back()
                await asyncio.sleep(AGAIN_S)
            except Exception as error:
                log.exception("sending failed", extra={"action": "cast_failed", "queue": self._queue.name})
                self._shared.service.metrics.local_errors.inc()
                self._give_back(failed=True)
                self._machine = Sender(self._key, self._shared.means.settings.sender())
                self._condition.report(f"{LOCAL_ERROR}: a fault of ours, see the log: {error!r:.200}")
                await asyncio.sleep(AGAIN_S)

    async def _send_next(self) -> None:
        """Raises StoreError."""
        await self._rest()
        message = await self._stock.next()
        self._current = message
        leaving = self._leaving(message)
        async with self._shared.line.turn(self._key, self._shared.means.machines.all_of(self._peers)):
            fate = await self._try(message)
        if leaving is not None:
            _tell(leaving, fate, self._receiver)
        await self._carry_out(message, fate)
        self._current = None

    def _leaving(self, message: Message) -> Leaving | None:
        """None: nothing of it is traced. An uncertain message has no id by which its receiver could go on."""
        hops, note = self._shared.service.store.trace_propagation, message.note
        if hops is None:
            return None
        return hops.leaving(message.delivery, None if note is None else hop_of(note.address, note.id))

    def _give_back(self, failed: bool = False) -> None:
        """All that is leased returns to its place; of what has a fate already, the store knows better.

        failed: what was being sent may be what we stumble at; after `maxDeliveries` times it is dead.
        """
        self._stock.release()
        if self._current is not None:
            self._stock.give_back([self._current.delivery], failed)
            self._current = None

    async def _rest(self) -> None:
        """The pause after an attempt that came to nothing (4.1)."""
        while self._machine.state is not SenderState.IDLE:
            deadline = self._machine.deadline()
            assert deadline is not None
            await asyncio.sleep(max(deadline - now(), 0.0))
            self._machine.on_time(max(now(), deadline))

    async def _try(self, message: Message) -> Fate:
        async def keep(kept: Kept) -> bool:
            try:
                await self._stock.keep(message, kept)
            except StoreError as error:
                fields = {"action": "cast_not_kept", "queue": self._queue.name}
                log.info("an attempt ends, as nothing can be kept: %s", error, extra=fields)
                return False
            return True

        address = message.note.address if message.note is not None else ""
        load = Load(message.outgoing, self._key, address, message.record, self._peers)
        self._attempt = Attempt(self._shared.means, self._machine, load, keep, self._waits)
        try:
            return await self._attempt.run()
        finally:
            self._receiver = self._attempt.receiver or load.outgoing.kept.receiver or ""
            self._attempt = None

    # what becomes of it

    async def _carry_out(self, message: Message, fate: Fate) -> None:
        """Raises StoreError; a message that is not ours any more is somebody else's to send."""
        try:
            await self._settle(message, fate)
        except LeaseLost:
            log.info("a message is another's now", extra={"action": "lease_lost", "queue": self._queue.name})
        self._judge(message, fate)

    async def _settle(self, message: Message, fate: Fate) -> None:
        pipe, delivery = self._pipe, message.delivery
        match fate:
            case Remove():
                pipe.messages.settle(
                    self._source, [delivery], self._removed
                )  # the next one need not wait for it
            case PutBack():
                await self._stock.put_back(message)
            case MoveToEnd():
                await self._stock.keep(message, fate.kept)
                await answered(
                    lambda done: pipe.messages.release(
                        self._source, [delivery], failed=False, to_end=True, error=fate.why.value, done=done
                    )
                )
            case Bury():
                await self._stock.keep(message, fate.kept)
                said = f"{fate.kept.failures} times FAILURE, the last from {self._receiver}"
                await self._bury(delivery, fate.why.value, said)
            case Hold():
                await self._bury(delivery, HELD, f"sent to {fate.kept.receiver}, which may have forgotten it")
            case _:
                assert_never(fate)

    async def _bury(self, delivery: Delivery, reason: str, error: str) -> None:
        await answered(lambda done: self._pipe.messages.reject(self._source, [delivery], reason, error, done))

    def _removed(self, error: StoreError | None) -> None:
        """It has left, and if this cannot be noted it leaves again: its receiver knows its id."""
        if error is not None:
            fields = {"action": "cast_not_removed", "queue": self._queue.name}
            log.warning("a message that was sent may be sent again: %s", error, extra=fields)
            self._shared.service.repeated.labels(self._shared.service.metrics.edge, PROTOCOL).inc()

    def _judge(self, message: Message, fate: Fate) -> None:
        """The counters, and what is told of the queue."""
        service = self._shared.service
        edge = service.metrics.edge
        tell: Callable[[str], None] = self._condition.say
        if isinstance(fate, Hold):
            fields = {"action": "cast_held", "queue": self._queue.name}
            log.error("a message is too old to be sent again: it is held in the dead letters", extra=fields)
            self._shared.means.counts.held.inc()
            self._trouble = f"{HELD}: too old to be sent again; it is in the dead letters"
        elif fate.why in (Why.CONFIRMED, Why.SENT):
            service.sent.labels(edge, PROTOCOL).inc()
            self._trouble = ""
        else:
            service.failures.labels(edge, PROTOCOL, fate.why.value).inc()
            if fate.why in (Why.NOT_CONFIRMED, Why.FAILURE):
                service.repeated.labels(edge, PROTOCOL).inc()
            self._trouble = f"{fate.why.value}: {self._words(message, fate.why)}"
            tell = self._condition.report
        tell(self._trouble)

    def _waits(self) -> None:
        """For its port: all are open, rest for the receiver, or are of an address that is away (1.2)."""
        self._condition.say(
            f"{NO_PORT}: {self._away() or f'waits for an endtransmission_port, of {self._ports}'}"
        )

    def _away(self) -> str:
        """What is said while the machine does not have the address that we send from; else ''."""
        means = self._shared.means
        return (
            ""
            if means.asker.is_here()
            else f"this machine does not have the address {means.settings.host} now"
        )

    def _emptied(self) -> None:
        """Whatever did not get through is gone: expired, or among the dead letters."""
        self._trouble = ""
        self._condition.say("", "no message waits any more")

    def _words(self, message: Message, why: Why) -> str:
        receiver = message.outgoing.kept.receiver
        match why:
            case Why.NO_ANSWER | Why.NOT_BEGUN if away := self._away():
                return away
            case Why.NO_ANSWER if not self._shared.means.machines.to_ask(self._peers):
                return "no machine is known that could be asked"
            case Why.NO_ANSWER:
                who = f"the receiver {receiver} does not answer" if receiver else "no machine answers"
                return f"{who} for key {self._key}"
            case Why.NOT_BEGUN | Why.CUT_SHORT:
                return f"connections to the receiver {self._receiver} fail"
            case Why.NOT_CONFIRMED:
                return f"the receiver {self._receiver} does not confirm"
            case _:
                return f"the receiver {self._receiver} says FAILURE"


def _tell(leaving: Leaving, fate: Fate, receiver: str) -> None:
    why = HELD if isinstance(fate, Hold) else fate.why.value
    is_well = not isinstance(fate, Hold) and fate.why in (Why.CONFIRMED, Why.SENT)
    is_over = isinstance(fate, Remove | Bury | Hold)
    leaving.ended(why, is_well=is_well, is_over=is_over, peer=receiver)
