"""Asks the ring for queues that are not in our store: the Asker of the client port (ring.md 5.3, 5.4).

Requests live as long as their client waits, so they wait for the successor in memory: a restart has no clients any
more. A settlement is kept in the store, as whatever waits there.
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
from services.ring.asking import Brought, Unserved
from services.ring.node.counts import ASKED, TIMED_OUT, Counts
from services.ring.node.outgoing.outgoing import PASSED
from services.ring.node.outgoing.passage import Parcel
from services.ring.node.outgoing.storing import Storing
from services.ring.words import (
    FAULT,
    STOPPED,
    STOPPING,
    TIMEOUT,
    TOO_MANY,
    UNKNOWN,
    UNSERVED,
    too_large_to_carry,
)
from services.store.model import hop_of_request
from services.store.tracing import TracePropagation, readable

log = logging.getLogger(__name__)

MAX_WAITING = 10_000  # requests
MAX_WAITING_BYTES = 32 << 20
SETTLE_PATIENCE_S = 60.0
UNDONE = "unserved"  # of what is traced
ALONE_S = 2.0  # how long a node that has heard of no other one waits for one to come (5.3)

Told = Callable[[Frame | Unserved], None]


@dataclass(slots=True)
class Waiting:
    told: Told
    timer: asyncio.TimerHandle
    size: int  # octets of its frame


class Asked:
    """A request for the successor: a Parcel. Nobody sends it again once nobody waits for its reply."""

    __slots__ = ("_around", "payload", "request")

    def __init__(self, around: RingAsker, request: bytes, payload: bytes) -> None:
        self._around = around
        self.request = request
        self.payload = payload

    def acknowledged(self) -> None:
        """The reply comes, or the timeout."""

    def returned(self) -> None:
        self.payload = resent(self.payload)
        self._around.returned(self)


class RingAsker:
    """`services.ring.asking.Asker`, and the Departures of its requests."""

    def __init__(
        self,
        me: bytes,
        storing: Storing,
        counted: Counts,
        timeout_s: float = 30.0,
        on_fault: Callable[[], None] = lambda: None,
        hops: TracePropagation | None = None,
        max_message: int = MAX_RING_MESSAGE,
    ) -> None:
        """on_fault: called for each fault of ours, to count it. hops: where requests are traced.

        max_message: octets of a message that a node of the ring can pass on.
        """
        self._max_message = max_message
        self._hops = hops
        self._me = me
        self._on_fault = on_fault
        self._count = counted.now
        self._storing = storing
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[bytes, Waiting] = {}  # by request id
        self._bytes = 0
        self._ready: deque[Asked] = deque()
        self._on_ready: list[Callable[[], None]] = []
        self._is_closed = False
        self.is_alone: Callable[[], bool] = lambda: False  # whether the node has heard of no other one

    def __len__(self) -> int:
        return len(self._waiting)

    # Asker

    def push(self, queue: bytes, body: bytes, done: Callable[[Unserved | None], None]) -> None:
        self._ask(Operation.PUSH, queue, body, partial(_tell_done, done))

    def pull(self, queue: bytes, done: Callable[[Brought | Unserved], None]) -> None:
        def told(answer: Frame | Unserved) -> None:
            done(answer if isinstance(answer, Unserved) else self._brought(answer))

        self._ask(Operation.PULL, queue, b"", told)

    def destroy(self, queue: bytes, done: Callable[[Unserved | None], None]) -> None:
        self._ask(Operation.DESTROY_QUEUE, queue, b"", partial(_tell_done, done))

    # Departures

    def take(self, room: int) -> list[Parcel]:
        taken: list[Parcel] = []
        while self._ready and len(taken) < room:
            parcel = self._ready.popleft()
            if parcel.request in self._waiting:
                taken.append(parcel)
        return taken

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._on_ready.append(callback)

    def returned(self, parcel: Asked) -> None:
        if parcel.request in self._waiting:
            self._ready.appendleft(parcel)

    # what comes round

    def answered(self, reply: Frame) -> bool:
        """A reply to us. False: nobody waits for it any more, and it is not settled (5.3)."""
        return self._tell(reply.request_id, Unserved(_reason(reply)) if _failed(reply) else reply)

    def came_back(self, request: Frame) -> bool:
        return self._tell(request.request_id, Unserved(UNKNOWN if request.resent else UNSERVED))

    def close(self) -> None:
        self._is_closed = True
        for request in list(self._waiting):
            self._tell(request, Unserved(STOPPED))

    # inside

    def _ask(self, operation: Operation, queue: bytes, body: bytes, told: Told) -> None:
        refused = self._refusal(len(body))
        if refused:
            self._loop.call_soon(told, Unserved(refused))
            return
        request = secrets.token_bytes(16)
        try:
            payload = encode_frame(Frame(operation, self._me, queue, body, request))
        except LocalError as error:  # the client must hear of it: its connection waits for this answer
            log.exception("a request fits no frame: %s", error, extra={"action": "ring_request_failed"})
            self._on_fault()
            self._loop.call_soon(told, Unserved(FAULT))
            return
        if self._hops is not None:
            told = _traced(self._hops, operation, queue, request, told)
        if self.is_alone() and self._timeout_s > ALONE_S:
            timer = self._loop.call_later(ALONE_S, self._look_around, request)
        else:
            timer = self._loop.call_later(self._timeout_s, self._time_out, request)
        self._count[ASKED] += 1
        self._waiting[request] = Waiting(told, timer, len(payload))
        self._bytes += len(payload)
        self._ready.append(Asked(self, request, payload))
        if len(self._ready) == 1:
            self._loop.call_soon(self._tell_ready)

    def _refusal(self, size: int) -> str:
        if size > self._max_message:
            return too_large_to_carry(self._max_message)
        if len(self._waiting) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            return TOO_MANY
        return STOPPING if self._is_closed else ""

    def _look_around(self, request: bytes) -> None:
        """Whoever is still alone has nobody to ask."""
        if self.is_alone():
            self._tell(request, Unserved(UNSERVED))
        else:
            left_s = self._timeout_s - ALONE_S
            self._waiting[request].timer = self._loop.call_later(left_s, self._time_out, request)

    def _time_out(self, request: bytes) -> None:
        self._count[TIMED_OUT] += 1
        self._tell(request, Unserved(TIMEOUT))

    def _tell_ready(self) -> None:
        for tell in self._on_ready:
            tell()

    def _tell(self, request: bytes, answer: Frame | Unserved) -> bool:
        waiting = self._waiting.pop(request, None)
        if waiting is None:
            return False
        waiting.timer.cancel()
        self._bytes -= waiting.size
        while self._ready and self._ready[0].request not in self._waiting:
            self._ready.popleft()  # while there is no link nobody takes them
        waiting.told(answer)
        return True

    def _brought(self, reply: Frame) -> Brought:
        settlement = Frame(Operation.OK, self._me, reply.queue, b"", reply.request_id, settles=True)
        is_settled = False

        def settle() -> None:
            nonlocal is_settled
            if not is_settled:
                is_settled = True
                self._storing.put([encode_frame(settlement)], PASSED, _ignore, SETTLE_PATIENCE_S)

        return Brought(reply.message, settle)


def _traced(hops: TracePropagation, operation: Operation, queue: bytes, request: bytes, told: Told) -> Told:
    """The same, told to the trace as well, if it is one."""
    doing, name = operation.name.lower(), readable(queue.decode("utf-8", "surrogateescape"))
    ended = hops.asked(doing, name, hop_of_request(request))
    if ended is None:
        return told

    def tell(answer: Frame | Unserved) -> None:
        ended(UNDONE if isinstance(answer, Unserved) else "")
        told(answer)

    return tell


def _tell_done(done: Callable[[Unserved | None], None], answer: Frame | Unserved) -> None:
    done(answer if isinstance(answer, Unserved) else None)


def _failed(reply: Frame) -> bool:
    return reply.operation is Operation.ERROR


def _reason(reply: Frame) -> str:
    return reply.message.decode("utf-8", "replace") or "refused without a reason"


def _ignore(_: bool) -> None:
    """Not stored: the lease runs out."""
