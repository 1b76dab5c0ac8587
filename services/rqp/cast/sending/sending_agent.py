"""Send the messages of one transmission queue while this process owns it (rqp_cast.md 4)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
from services.rqp.cast.machines.machines import PROTOCOL
from services.rqp.cast.sending.attempt import Attempt, Outcome, SendingContext, Transmission
from services.rqp.cast.sending.prefetch_buffer import Message, PrefetchBuffer
from services.rqp.cast.trace_propagation import hop_of
from services.rqp.condition import Condition
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import LeaseLost, now
from services.store.pipeline import answered
from services.store.tracing import Leaving

log = logging.getLogger(__name__)

AGAIN_S = 0.5  # pause after an error
NO_PORT = "no_port"  # no attempt has failed, but none can begin
LOCAL_ERROR = "local_error"  # an internal error
HELD = "held"  # reason of dead letters that need the operator (4.2)
RETURN_S = 2.0  # how long to wait at the end for messages to be returned to the store


class CastSendingAgent:
    """The sending agent of one queue: sends from its creation until `close`."""

    def __init__(self, context: SendingContext, queue: Queue, condition: Condition) -> None:
        remote = queue.spec.remote
        assert remote is not None  # it is a transmission queue
        self._context = context
        self._queue = queue
        self._condition = condition
        self._key = remote.number
        self._peers = tuple(remote.peers)
        self._pipe = context.service.pipe(queue)
        self._source = Source(INTERNAL_CLIENT)
        self._machine = Sender(self._key, context.settings.sender())
        address = context.questions.address
        self._buffer = PrefetchBuffer(context.service, queue, context.ids, address, self._emptied)
        self._attempt: Attempt | None = None
        self._current: Message | None = None  # the message being sent, until its outcome is carried out
        self._receiver = ""  # of the last attempt
        self._stopping = False
        self._task = asyncio.create_task(self._run(), name=f"rqp cast {queue.name!r}")

    async def close(self, *, lost: bool) -> None:
        """Wait for the confirmation of a message in flight, unless the ownership is lost; give back the rest."""
        self._stopping = True
        if lost or self._attempt is None or not self._attempt.is_in_flight:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._give_back()
        if not lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETURN_S):
                    await self._buffer.is_quiet()

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._send_next()
            except StoreError as error:
                fields = {"action": "cast_waits", "queue": self._queue.name}
                log.info("sending waits for the store: %s", error, extra=fields)
                self._give_back()
                await asyncio.sleep(AGAIN_S)
            except Exception as error:
                fields = {"action": "cast_failed", "queue": self._queue.name}
                log.exception("internal error, the message will be retried", extra=fields)
                self._context.service.metrics.local_errors.inc()
                self._give_back(failed=True)
                self._machine = Sender(self._key, self._context.settings.sender())
                self._condition.report_failure(f"{LOCAL_ERROR}: internal error, see the log: {error!r:.200}")
                await asyncio.sleep(AGAIN_S)

    async def _send_next(self) -> None:
        """Send the next message. Raises StoreError."""
        await self._rest()
        message = await self._buffer.next()
        self._current = message
        leaving = self._leaving(message)
        async with self._context.locks.hold(self._key, self._context.machines.all_of(self._peers)):
            outcome = await self._try(message)
        if leaving is not None:
            _end_span(leaving, outcome, self._receiver)
        await self._carry_out(message, outcome)
        self._current = None

    def _leaving(self, message: Message) -> Leaving | None:
        """Begin the span of a delivery, if it is traced. Without an id the receiver cannot continue the trace."""
        hops, note = self._context.service.store.trace_propagation, message.note
        if hops is None:
            return None
        return hops.leaving(message.delivery, None if note is None else hop_of(note.address, note.id))

    def _give_back(self, failed: bool = False) -> None:
        """Return all leased messages to their places; the store ignores those already settled.

        failed: the message being sent may cause the error; after `maxDeliveries` times it is dead-lettered.
        """
        self._buffer.release()
        if self._current is not None:
            self._buffer.give_back([self._current.delivery], failed)
            self._current = None

    async def _rest(self) -> None:
        """Pause after a failed attempt (4.1)."""
        while self._machine.state is not SenderState.IDLE:
            deadline = self._machine.deadline()
            assert deadline is not None
            await asyncio.sleep(max(deadline - now(), 0.0))
            self._machine.on_time(max(now(), deadline))

    async def _try(self, message: Message) -> Outcome:
        async def keep(kept: Kept) -> bool:
            try:
                await self._buffer.keep(message, kept)
            except StoreError as error:
                fields = {"action": "cast_not_kept", "queue": self._queue.name}
                log.info("attempt ended, its state cannot be stored: %s", error, extra=fields)
                return False
            return True

        address = message.note.address if message.note is not None else ""
        sent = Transmission(message.outgoing, self._key, address, message.record, self._peers)
        self._attempt = Attempt(self._context, self._machine, sent, keep, self._waits_for_port)
        try:
            return await self._attempt.run()
        finally:
            self._receiver = self._attempt.receiver or sent.outgoing.kept.receiver or ""
            self._attempt = None

    # outcomes

    async def _carry_out(self, message: Message, outcome: Outcome) -> None:
        """Settle or return the message. Raises StoreError."""
        try:
            await self._settle(message, outcome)
        except LeaseLost:
            fields = {"action": "lease_lost", "queue": self._queue.name}
            log.info("lease lost, another process sends the message", extra=fields)
        self._report(message, outcome)

    async def _settle(self, message: Message, outcome: Outcome) -> None:
        pipe, delivery = self._pipe, message.delivery
        match outcome:
            case Remove():
                pipe.messages.settle(self._source, [delivery], self._removed)  # not awaited, for speed
            case PutBack():
                await self._buffer.put_back(message)
            case MoveToEnd():
                await self._buffer.keep(message, outcome.kept)
                why = outcome.why.value
                await answered(
                    lambda done: pipe.messages.release(
                        self._source, [delivery], failed=False, to_end=True, error=why, done=done
                    )
                )
            case Bury():
                await self._buffer.keep(message, outcome.kept)
                error = f"{outcome.kept.failures} times FAILURE, the last from {self._receiver}"
                await self._bury(delivery, outcome.why.value, error)
            case Hold():
                error = f"sent to {outcome.kept.receiver}, which may have forgotten it"
                await self._bury(delivery, HELD, error)
            case _:
                assert_never(outcome)

    async def _bury(self, delivery: Delivery, reason: str, error: str) -> None:
        await answered(lambda done: self._pipe.messages.reject(self._source, [delivery], reason, error, done))

    def _removed(self, error: StoreError | None) -> None:
        """Warn if a sent message could not be removed: it will be resent, and its receiver recognizes the id."""
        if error is not None:
            fields = {"action": "cast_not_removed", "queue": self._queue.name}
            log.warning("sent message not removed, it may be resent: %s", error, extra=fields)
            self._context.service.repeated.labels(self._context.service.metrics.edge, PROTOCOL).inc()

    def _report(self, message: Message, outcome: Outcome) -> None:
        """Count the outcome and set the queue's condition."""
        service = self._context.service
        edge = service.metrics.edge
        if isinstance(outcome, Hold):
            fields = {"action": "cast_held", "queue": self._queue.name}
            log.error("message dead-lettered as held: it is too old to be resent", extra=fields)
            self._context.counts.held.inc()
            self._condition.set(f"{HELD}: too old to be sent again; it is in the dead letters")
        elif outcome.why in (Why.CONFIRMED, Why.SENT):
            service.sent.labels(edge, PROTOCOL).inc()
            self._condition.set("")
        else:
            service.failures.labels(edge, PROTOCOL, outcome.why.value).inc()
            if outcome.why in (Why.NOT_CONFIRMED, Why.FAILURE):
                service.repeated.labels(edge, PROTOCOL).inc()
            self._condition.report_failure(f"{outcome.why.value}: {self._explain(message, outcome.why)}")

    def _waits_for_port(self) -> None:
        """Set the condition: all ports are open, rest for the receiver, or belong to a missing address (1.2)."""
        ports = self._context.settings.sender_ports
        self._condition.set(
            f"{NO_PORT}: {self._missing_address() or f'waits for an endtransmission_port, of {ports}'}"
        )

    def _missing_address(self) -> str:
        """Return a text while this machine does not have the address to send from; else ''."""
        if self._context.questions.has_address():
            return ""
        return f"this machine does not have the address {self._context.settings.host} now"

    def _emptied(self) -> None:
        """Clear the condition: undelivered messages have expired or are dead-lettered."""
        self._condition.set("", "no message waits any more")

    def _explain(self, message: Message, why: Why) -> str:
        receiver = message.outgoing.kept.receiver
        match why:
            case Why.NO_ANSWER | Why.NOT_BEGUN if missing := self._missing_address():
                return missing
            case Why.NO_ANSWER if not self._context.machines.to_ask(self._peers):
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


def _end_span(leaving: Leaving, outcome: Outcome, receiver: str) -> None:
    why = HELD if isinstance(outcome, Hold) else outcome.why.value
    is_well = not isinstance(outcome, Hold) and outcome.why in (Why.CONFIRMED, Why.SENT)
    is_over = isinstance(outcome, Remove | Bury | Hold)
    leaving.ended(why, is_well=is_well, is_over=is_over, peer=receiver)
