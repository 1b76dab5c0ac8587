"""Carry out other nodes' requests on local queues (ring.md 5.3, 5.4)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from protos.ring import MAX_RING_MESSAGE, NO_ID, Frame, Operation
from services.kit.net import Denials
from services.ring.error_texts import EMPTY, EXPIRED, REFUSED, error_text, too_large_to_carry
from services.ring.node.queues.destroy_queue import destroy
from services.ring.node.queues.leases import Leases
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Delivery, Outcome, Queue, Source, StoreError
from services.store.model import (
    AccessDenied,
    MessageTooLarge,
    Nothing,
    OutcomeUnknown,
    Pulled,
    QueueExists,
    QueueUnknown,
    Refusals,
    RequestId,
    Settlement,
    StoreEvicts,
    StoreFull,
    StoreUnavailable,
    hop_of_request,
    records,
)

log = logging.getLogger(__name__)

KEEP_MS = 24 * 3600 * 1000  # how long the outcome of a request is kept (5.4)
BRIEF_MS = 60_000  # a pull without an id is repeated only by the store's own connection
STORE_WIDE = (StoreUnavailable, OutcomeUnknown, StoreFull, StoreEvicts)  # no reply then: try again


class NotHere(Enum):
    """Why a request is forwarded."""

    QUEUE = "the queue is not here"
    LEASE = "no message is leased under this id"


@dataclass(frozen=True, slots=True)
class Reply:
    """The frame to answer. `stored` is called once it is safe, `unsafe` if it cannot be stored."""

    frame: Frame
    stored: Callable[[], None] | None = None
    unsafe: Callable[[], None] | None = None


class Settled(Enum):
    """A settlement was carried out: it has no reply."""

    SETTLED = "settled"


# a StoreError is one of STORE_WIDE: try again
Done = Callable[[Reply | Settled | NotHere | StoreError], None]


class Serving:
    """Carries out requests with the local store."""

    def __init__(self, service: RingService, leases: Leases, max_message: int = MAX_RING_MESSAGE) -> None:
        """max_message: octets of a message that a node of the ring can forward."""
        self._service = service
        self._max_message = max_message
        self._leases = leases
        self._denials = Denials(service.metrics)
        self._source = Source(service.store.client())  # one for all: pushes keep their order

    def _reply_to(self, frame: Frame, refused: StoreError | None) -> Reply | NotHere | StoreError:
        if isinstance(refused, AccessDenied):
            self._denials.record(refused.reason, _origin(frame), str(refused))
        if frame.operation is Operation.PULL and isinstance(refused, MessageTooLarge):
            return Reply(error(frame, too_large_to_carry(self._max_message)))
        return _answer(frame, refused)

    def carry_out(self, frame: Frame, queue: Queue | None, done: Done) -> None:
        """Carry out a request. `queue`: the one it names, None if not here. `done` may be called at once."""
        if frame.operation is Operation.DESTROY_QUEUE:
            self._destroy(frame, done)
        elif queue is None:
            done(NotHere.QUEUE)
        elif frame.operation is Operation.PUSH:
            self._push(frame, queue, done)
        elif frame.operation is Operation.PULL:
            self._pull(frame, queue, done)
        elif frame.settles:
            self._settle(frame, queue, done)
        else:  # create_queue is never sent around: a node creates queues in its own store
            done(Reply(error(frame, error_text(QueueExists()))))

    def _push(self, frame: Frame, queue: Queue, done: Done) -> None:
        pipe, origin = self._service.pipe(queue), _origin(frame)
        record = records.encode(frame.message)
        if frame.request_id == NO_ID:
            pushed: Callable[[Refusals | StoreError], None] = lambda answer: done(  # noqa: E731
                self._reply_to(
                    frame, answer if isinstance(answer, StoreError) else answer[0][1] if answer else None
                )
            )
            pipe.messages.publish(self._source, queue, [record], origin, pushed)
            return

        hops = self._service.store.trace_propagation
        if hops is not None:
            record = hops.arrived(queue, record, hop_of_request(frame.request_id))

        def once(outcome: Outcome | StoreError) -> None:
            done(self._reply_to(frame, outcome if isinstance(outcome, StoreError) else None))

        identity = RequestId(frame.request_id, KEEP_MS)
        pipe.idempotent.publish(self._source, identity, queue, record, origin, once)

    def _pull(self, frame: Frame, queue: Queue, done: Done) -> None:
        """Pull a message. Without a request id it can be neither settled nor repeated: settle it with the reply."""
        has_id = frame.request_id != NO_ID
        request, keep_ms = (
            (frame.request_id, KEEP_MS) if has_id else (secrets.token_bytes(len(NO_ID)), BRIEF_MS)
        )
        pulled = partial(self._pulled, frame, done)
        pipe = self._service.pipe(queue)
        pipe.idempotent.pull(self._source, request, queue, self._max_message, keep_ms, pulled)

    def _pulled(self, frame: Frame, done: Done, answer: Pulled | Nothing | StoreError) -> None:
        if isinstance(answer, Pulled) and frame.request_id == NO_ID:
            done(self._handed_over(frame, answer.delivery))
        elif isinstance(answer, Pulled):
            reply = _message(frame, answer.delivery)
            if not answer.again:
                self._leases.hold(frame.request_id, answer.delivery)
            done(reply)
        elif isinstance(answer, Nothing):
            done(Reply(error(frame, EMPTY if answer is Nothing.EMPTY else EXPIRED)))
        else:
            done(self._reply_to(frame, answer))

    def _handed_over(self, frame: Frame, delivery: Delivery) -> Reply:
        reply = _message(frame, delivery)
        if delivery.settled:
            return reply
        delivery.drop_bodies()
        settle = partial(
            self._service.pipe(delivery.queue).messages.settle, Source(INTERNAL_CLIENT), [delivery]
        )
        give_back = partial(self._service.give_back, [delivery], failed=False)
        return Reply(reply.frame, settle, give_back)

    def _settle(self, frame: Frame, queue: Queue, done: Done) -> None:
        def settled(answer: Settlement | StoreError) -> None:
            if isinstance(answer, StoreError):
                done(answer if isinstance(answer, STORE_WIDE) else NotHere.LEASE)
            elif answer is Settlement.UNKNOWN:
                done(NotHere.LEASE)
            else:
                self._leases.settled(frame.request_id)
                done(Settled.SETTLED)

        self._service.pipe(queue).idempotent.settle(self._source, frame.request_id, queue, settled)

    def _destroy(self, frame: Frame, done: Done) -> None:
        def destroyed(answer: str | StoreError | None) -> None:
            if answer is None:
                done(NotHere.QUEUE)
            elif isinstance(answer, StoreError):
                done(self._reply_to(frame, answer))
            else:
                done(Reply(error(frame, answer) if answer else ok(frame)))

        self._service.background.run(destroy(self._service.store, frame), destroyed)


def ok(request: Frame, message: bytes = b"") -> Frame:
    """Return the OK to a request."""
    return Frame(Operation.OK, request.sender, request.queue, message, request.request_id)


def error(request: Frame, reason: str) -> Frame:
    """Return the ERROR to a request."""
    text = reason.encode("utf-8", "replace")[:MAX_RING_MESSAGE]
    return Frame(Operation.ERROR, request.sender, request.queue, text, request.request_id)


def _answer(frame: Frame, refused: StoreError | None) -> Reply | NotHere | StoreError:
    """Return the answer to a request that only succeeds or fails."""
    if refused is None:
        return Reply(ok(frame))
    if isinstance(refused, QueueUnknown):
        return NotHere.QUEUE
    if isinstance(refused, STORE_WIDE):
        return refused
    text = error_text(refused)
    if text == REFUSED[StoreError]:  # the text refers to the log
        log.warning(
            "request around the ring refused: %s",
            refused,
            extra={"action": "ring_refused", "reason": refused.reason},
        )
    return Reply(error(frame, text))


def _message(frame: Frame, delivery: Delivery) -> Reply:
    (record,) = delivery.records()
    return Reply(ok(frame, records.decode(record).body))


def _origin(frame: Frame) -> str:
    return "ring " + frame.sender.decode("utf-8", "replace")
