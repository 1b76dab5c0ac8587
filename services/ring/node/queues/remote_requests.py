"""Send local clients' requests around the ring: the RemoteQueues of the client port (ring.md 5.3, 5.4).

Requests live as long as their client waits, so they wait for the successor in memory: after a restart there are no
clients. A settlement is kept in the store, like all other messages for the successor.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from protos.ring import MAX_RING_MESSAGE, Frame, Operation, encode_frame, resent
from protos.types import LocalError
from services.ring.error_texts import (
    FAULT,
    STOPPED,
    STOPPING,
    TIMEOUT,
    TOO_MANY,
    UNKNOWN,
    UNSERVED,
    too_large_to_carry,
)
from services.ring.node.counts import Counts, UserOutcome
from services.ring.node.outgoing.outgoing import PASSED
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.ring.node.outgoing.writer import QueueWriter
from services.ring.remote_queues import NotDone, RemoteMessage
from services.store.model import hop_of_request
from services.store.tracing import TracePropagation, readable

log = logging.getLogger(__name__)

MAX_WAITING = 10_000  # requests without a reply
MAX_WAITING_BYTES = 32 << 20
SETTLE_PATIENCE_S = 60.0
UNDONE = "unserved"  # the span status of a failed request
ALONE_S = 2.0  # how long a node that has heard of no other waits for one (5.3)

Done = Callable[[Frame | NotDone], None]


@dataclass(slots=True)
class Waiting:
    """A request without a reply."""

    done: Done
    timer: asyncio.TimerHandle
    size: int  # octets of its frame


class Asked:
    """A request for the successor, as an OutgoingMessage; it is not sent again once its client has stopped waiting."""

    __slots__ = ("_owner", "payload", "request")

    def __init__(self, owner: RemoteRequests, request: bytes, payload: bytes) -> None:
        self._owner = owner
        self.request = request
        self.payload = payload

    def acknowledged(self) -> None:
        """Do nothing: the reply follows, or the timeout."""

    def returned(self) -> None:
        """Mark the payload as sent again and queue it."""
        self.payload = resent(self.payload)
        self._owner.returned(self)


class RemoteRequests:
    """The RemoteQueues of the client port, and the UserSource of its requests."""

    def __init__(
        self,
        me: bytes,
        writer: QueueWriter,
        counted: Counts,
        timeout_s: float = 30.0,
        on_fault: Callable[[], None] = lambda: None,
        hops: TracePropagation | None = None,
        max_message: int = MAX_RING_MESSAGE,
    ) -> None:
        """on_fault: called for each internal error, to count it. hops: where requests are traced.

        max_message: octets of a message that a node of the ring can forward.
        """
        self._max_message = max_message
        self._hops = hops
        self._me = me
        self._on_fault = on_fault
        self._count = counted.now
        self._writer = writer
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[bytes, Waiting] = {}  # by request id
        self._bytes = 0
        self._ready: deque[Asked] = deque()
        self._on_ready: list[Callable[[], None]] = []
        self._is_closed = False
        self.is_alone: Callable[[], bool] = lambda: False  # True if the node has heard of no other

    def __len__(self) -> int:
        """Return how many requests wait for their reply."""
        return len(self._waiting)

    # AsyncClient

    def push(self, queue: bytes, body: bytes, done: Callable[[NotDone | None], None]) -> None:
        """Push a message; see `RemoteQueues`."""
        self._ask(Operation.PUSH, queue, body, partial(_pass_outcome, done))

    def pull(self, queue: bytes, done: Callable[[RemoteMessage | NotDone], None]) -> None:
        """Pull a message; see `RemoteQueues`."""

        def replied(answer: Frame | NotDone) -> None:
            done(answer if isinstance(answer, NotDone) else self._brought(answer))

        self._ask(Operation.PULL, queue, b"", replied)

    def destroy(self, queue: bytes, done: Callable[[NotDone | None], None]) -> None:
        """Destroy a queue; see `RemoteQueues`."""
        self._ask(Operation.DESTROY_QUEUE, queue, b"", partial(_pass_outcome, done))

    def take(self, room: int) -> list[OutgoingMessage]:
        """Return at most `room` requests to send next."""
        taken: list[OutgoingMessage] = []
        while self._ready and len(taken) < room:
            message = self._ready.popleft()
            if message.request in self._waiting:
                taken.append(message)
        return taken

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called whenever there may be requests after there were none."""
        self._on_ready.append(callback)

    def returned(self, message: Asked) -> None:
        """Queue a request again if its client still waits."""
        if message.request in self._waiting:
            self._ready.appendleft(message)

    def answered(self, reply: Frame) -> bool:
        """Hand a reply to its client. Return False if none waits: then it stays unsettled (5.3)."""
        if reply.operation is not Operation.ERROR:
            return self._finish(reply.request_id, reply)
        reason = reply.message.decode("utf-8", "replace") or "refused without a reason"
        return self._finish(reply.request_id, NotDone(reason))

    def came_back(self, request: Frame) -> bool:
        """Fail a request that went around unserved. Return False if no client waits for it."""
        return self._finish(request.request_id, NotDone(UNKNOWN if request.resent else UNSERVED))

    def close(self) -> None:
        """Fail all requests, and every new one."""
        self._is_closed = True
        for request in list(self._waiting):
            self._finish(request, NotDone(STOPPED))

    def _ask(self, operation: Operation, queue: bytes, body: bytes, done: Done) -> None:
        refused = self._refusal(len(body))
        if refused:
            self._loop.call_soon(done, NotDone(refused))
            return
        request = secrets.token_bytes(16)
        try:
            payload = encode_frame(Frame(operation, self._me, queue, body, request))
        except LocalError as error:  # reply all the same: the client's connection waits
            log.exception(
                "internal error: request fits no frame: %s",
                error,
                extra={"action": "ring_request_failed"},
            )
            self._on_fault()
            self._loop.call_soon(done, NotDone(FAULT))
            return
        if self._hops is not None:
            done = _traced(self._hops, operation, queue, request, done)
        if self.is_alone() and self._timeout_s > ALONE_S:
            timer = self._loop.call_later(ALONE_S, self._end_if_alone, request)
        else:
            timer = self._loop.call_later(self._timeout_s, self._time_out, request)
        self._count[UserOutcome.ASKED] += 1
        self._waiting[request] = Waiting(done, timer, len(payload))
        self._bytes += len(payload)
        self._ready.append(Asked(self, request, payload))
        if len(self._ready) == 1:
            self._loop.call_soon(self._notify)

    def _refusal(self, size: int) -> str:
        if size > self._max_message:
            return too_large_to_carry(self._max_message)
        if len(self._waiting) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            return TOO_MANY
        return STOPPING if self._is_closed else ""

    def _end_if_alone(self, request: bytes) -> None:
        """Fail the request early if no other node has been heard of."""
        if self.is_alone():
            self._finish(request, NotDone(UNSERVED))
        else:
            left_s = self._timeout_s - ALONE_S
            self._waiting[request].timer = self._loop.call_later(left_s, self._time_out, request)

    def _time_out(self, request: bytes) -> None:
        self._count[UserOutcome.TIMED_OUT] += 1
        self._finish(request, NotDone(TIMEOUT))

    def _notify(self) -> None:
        for callback in self._on_ready:
            callback()

    def _finish(self, request: bytes, answer: Frame | NotDone) -> bool:
        waiting = self._waiting.pop(request, None)
        if waiting is None:
            return False
        waiting.timer.cancel()
        self._bytes -= waiting.size
        while self._ready and self._ready[0].request not in self._waiting:
            self._ready.popleft()  # without a link they are not taken
        waiting.done(answer)
        return True

    def _brought(self, reply: Frame) -> RemoteMessage:
        settlement = Frame(Operation.OK, self._me, reply.queue, b"", reply.request_id, settles=True)
        is_settled = False

        def settle() -> None:
            nonlocal is_settled
            if not is_settled:
                is_settled = True
                self._writer.put([encode_frame(settlement)], PASSED, _ignore, SETTLE_PATIENCE_S)

        return RemoteMessage(reply.message, settle)


def _traced(hops: TracePropagation, operation: Operation, queue: bytes, request: bytes, done: Done) -> Done:
    """Return `done`, which also ends the request's span if it is traced."""
    doing, name = operation.name.lower(), readable(queue.decode("utf-8", "surrogateescape"))
    ended = hops.asked(doing, name, hop_of_request(request))
    if ended is None:
        return done

    def finish(answer: Frame | NotDone) -> None:
        ended(UNDONE if isinstance(answer, NotDone) else "")
        done(answer)

    return finish


def _pass_outcome(done: Callable[[NotDone | None], None], answer: Frame | NotDone) -> None:
    done(answer if isinstance(answer, NotDone) else None)


def _ignore(_: bool) -> None:
    """Do nothing: without a stored settlement the lease runs out."""
