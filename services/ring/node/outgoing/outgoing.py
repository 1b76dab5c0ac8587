"""The outgoing queue as a UserSource: messages in the store for the successor (ring.md 2.2, 4.5).

The call that stores messages takes them, too, so neither costs a wait of its own. If no older message waits, they may
leave while that call is under way: a trip around the ring then waits for one disk at a time, not for each node's in
turn. They are stored all the same, and the predecessor is answered only then. They leave in the order of the queue:
every writer announces messages here first, and all use one source of the store (`putting`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from protos.ring import MAX_USER
from services.ring.node.outgoing.in_flight import InFlight
from services.ring.node.outgoing.settling import Settler
from services.ring.node.outgoing.stored_message import StoredMessage, merged, payload_of
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import KEEPER

BEGUN = "ring begun"  # origin in the store of messages that this node begins
PASSED = "ring passed"  # and of messages that it forwards
AGAIN_S = 0.25  # until a refused call is repeated
AHEAD = 256  # most messages leased and not answered
TOO_LARGE = "too_large_for_ring"  # reason of dead letters


class Outgoing:
    """The outgoing queue between `own` and `forget`; the messages are in the store for any process to send."""

    def __init__(self, service: RingService, put_on: Callable[[bytes], None]) -> None:
        """put_on: called for each message that this node begins, before it can come back."""
        self._service = service
        self._put_on = put_on
        self._loop = asyncio.get_running_loop()
        self._queue: Queue | None = None
        self._generation = 0  # generation of the leases
        self.putting = Source(KEEPER, begins_traces=False)  # of all messages put into the queue
        self._settler = Settler(service, self._top_up)
        self._ready: deque[StoredMessage] = deque()
        self.in_flight = InFlight()  # left before the queue has shown them
        self._held = 0  # leased and not answered
        self._asked = 0  # being taken from the store
        self._has_more = False  # there may be more in the queue
        self._is_polling = False  # a take for messages that were not announced is under way
        self._is_doubted = False  # the last write was refused
        self._begun: set[tuple[bytes, int]] = set()  # places of unanswered messages that the relay knows
        self._on_ready: list[Callable[[], None]] = []

    def __len__(self) -> int:
        """Return how many messages the successor may have now."""
        return len(self._ready)

    # UserSource

    def take(self, room: int) -> list[OutgoingMessage]:
        """Return at most `room` messages that are to be sent next."""
        taken: list[OutgoingMessage] = []
        ready = self._ready
        while ready and len(taken) < room:
            message = ready.popleft()
            if message.is_begun and not message.is_put_on:
                self._begin(message)
            taken.append(message)
        return taken

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called whenever there may be messages after there were none."""
        self._on_ready.append(callback)

    def acknowledged(self, message: StoredMessage) -> None:
        """Settle a message that the successor has answered."""
        if message.generation != self._generation:
            return  # its lease has ended
        message.is_answered = True
        if message.delivery is not None:
            self._held -= 1
            self._is_done(message)

    def returned(self, message: StoredMessage) -> None:
        """Put a message back to the front."""
        if message.generation == self._generation:
            self._ready.appendleft(message)

    def _begin(self, message: StoredMessage) -> None:
        message.is_put_on = True
        if message.delivery is not None:
            self._begun.add(message.place)
        self._put_on(message.payload)

    @property
    def is_clear(self) -> bool:
        """True if a message that is stored now can leave soon."""
        return self._queue is not None and not self._has_more and self._held + self._asked < AHEAD

    @property
    def is_early(self) -> bool:
        """True if a message that is stored now leaves while the store still writes it."""
        waits = self._has_more or self._is_polling or self._is_doubted
        return self._queue is not None and not waits

    def own(self, queue: Queue) -> None:
        """Start: this process owns the queue alone, and no message of it is leased."""
        self._queue = queue
        self._settler.use(queue)
        self.poll()

    def forget(self) -> None:
        """Stop: all leases end now or soon, and messages that were not settled are sent again."""
        self._queue = None
        self._generation += 1
        self._settler.use(None)
        self._ready.clear()
        self.in_flight.clear()
        self._held = self._asked = 0
        self._is_polling = False

    def close(self) -> None:
        """Settle what can be; give back what was not sent, so that the next owner can take it at once."""
        self._settler.flush()
        left = [message for message in self._ready if message.delivery is not None]
        if left:
            self._service.give_back(merged(left), failed=False)
        self.forget()

    # putting in, and taking

    def put(self, payloads: list[bytes], is_begun: bool) -> list[StoredMessage]:
        """Announce messages that are stored next, in this order, by `putting`; then call `expect`.

        Returns those that leave at once, for `are_safe`: none if older ones wait, or on a retry of what the store
        refuses.
        """
        room = AHEAD - max(self._held + self._asked, len(self.in_flight))
        if not self.is_early or len(payloads) > room:
            self._has_more = True  # polled for later: newer messages must not overtake these
            return []
        messages = [StoredMessage(self, self._generation, payload, is_begun) for payload in payloads]
        self.in_flight.leave(messages)
        self._ready.extend(messages)
        return messages

    def expect(self, number: int) -> None:
        """Take `number` messages with the call being gathered, which stores them."""
        self._settler.flush()
        if self._queue is not None:
            self._ask(number)
        if self._ready:
            self._notify()

    def are_safe(self, messages: list[StoredMessage]) -> None:
        """Note that the messages are stored."""
        self._is_doubted = False
        for message in messages:
            message.is_safe = True

    def mistrust(self) -> None:
        """Note that a write failed: messages that left early may not be in the store."""
        self.in_flight.orphan()
        self._drop_orphans()
        self._has_more = self._is_doubted = True
        self._loop.call_later(AGAIN_S, self._top_up)

    def poll(self) -> None:
        """Look for messages in the queue that were not announced."""
        self._has_more = True
        self._top_up()

    def _top_up(self) -> None:
        if self._queue is not None and self._has_more and not self._asked and 2 * self._held <= AHEAD:
            self._ask(0)

    def _drop_orphans(self) -> None:
        self._ready = deque(message for message in self._ready if message.generation == self._generation)

    def _ask(self, number: int) -> None:
        room = AHEAD - self._held - self._asked
        polls = self._has_more and not self._asked
        want = room if polls else min(number, room)
        if want <= 0 or self._queue is None:
            self._has_more = True
            return
        self._has_more = (self._has_more and not polls) or want < number
        self._is_polling = self._is_polling or polls
        self._asked += want
        done = partial(self._taken, self._generation, want, self.in_flight.safe() if polls else None)
        self._service.pipe(self._queue).messages.take(
            self.putting.behind(), self._queue, want, done, leased=True
        )

    def _taken(
        self,
        generation: int,
        want: int,
        safe: set[StoredMessage] | None,
        got: list[Delivery] | StoreError,
        more: bool,
    ) -> None:
        """Handle the result of a take.

        safe: set if it looks for other messages in the queue: those known to be stored that the queue has not shown.
        """
        if generation != self._generation:
            if isinstance(got, list):
                self._service.give_back(got, failed=False)
            return
        self._asked -= want
        polled = safe is not None
        self._is_polling = self._is_polling and not polled
        if isinstance(got, StoreError):
            self._has_more = True
            self._loop.call_later(AGAIN_S, self._top_up)
            return
        number = sum(d.count for d in got)
        self._has_more = self._has_more or more or (polled and number == want)
        for delivery in got:
            self._admit(delivery)
        if safe and number < want and not more:
            self.in_flight.are_gone(safe)
            self._drop_orphans()
        self._top_up()
        if self._ready:
            self._notify()

    def _notify(self) -> None:
        for callback in self._on_ready:
            callback()

    def _admit(self, delivery: Delivery) -> None:
        is_begun = delivery.origin == BEGUN
        for index, record in enumerate(delivery.records()):
            payload = payload_of(record)
            message = self.in_flight.shown(payload, is_begun)
            if message is not None:
                message.locate(delivery, index, len(record) - 4)
                self._found(message)
                continue
            message = StoredMessage(self, self._generation, payload, is_begun)
            message.locate(delivery, index, len(record) - 4)
            if len(payload) > MAX_USER:  # not written by a node
                self._service.pipe(delivery.queue).messages.reject(
                    Source(INTERNAL_CLIENT), merged([message]), TOO_LARGE
                )
                continue
            message.is_put_on = message.place in self._begun
            if delivery.history:
                message.mark_resent()
            self._held += 1
            self._ready.append(message)

    def _found(self, message: StoredMessage) -> None:
        if message.is_answered:
            self._is_done(message)
            return
        self._held += 1
        if message.is_put_on:
            self._begun.add(message.place)

    def _is_done(self, message: StoredMessage) -> None:
        self._begun.discard(message.place)
        self._settler.add(message)
