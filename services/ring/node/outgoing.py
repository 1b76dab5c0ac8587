"""What waits for the successor: the Departures of what is in the store (ring.md 2.2, 4.5).

The call that puts messages in takes them, too, so neither costs a wait of its own. If nothing waits before them, they
may leave while that call is under way: a trip around the ring then waits for one disk at a time, not for that of each
node in turn. They are put in all the same, and the predecessor is answered only when they are. What the successor has
answered is settled many at a time, with the next call that is made anyway.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from protos.ring import MAX_USER
from services.ring.node.parcels import ORPHAN, Stored, merged, payload_of
from services.ring.node.passage import Parcel
from services.ring.service import RingService
from services.store import Delivery, Queue, Source, StoreError
from services.store.errors import LeaseLost, QueueUnknown

BEGUN = "ring begun"  # origin in the store of what this node put on the ring
PASSED = "ring passed"  # and of what it passes on
AGAIN_S = 0.25  # what the store refused is asked again after this long
AHEAD = 256  # messages leased and not answered, at most
SETTLE_S = 0.01  # what is answered waits so long for a call to go with
SETTLE_MANY = 64  # messages that do not wait
SETTLE_AGAIN_S = 1.0
TOO_LARGE = "too_large_for_ring"  # of dead letters


class Outgoing:
    """`own` begins it, `forget` ends what was begun: the messages are in the store, whoever sends them."""

    def __init__(self, service: RingService, put_on: Callable[[bytes], None]) -> None:
        """put_on: told of each message that this node begins, before it can come back."""
        self._service = service
        self._put_on = put_on
        self._loop = asyncio.get_running_loop()
        self._queue: Queue | None = None
        self._life = 0  # of what is leased
        self._taking, self._settling = Source(), Source()
        self._ready: deque[Stored] = deque()
        self._early: deque[Stored] = deque()  # those of which the store has not told yet where they stand
        self._held = 0  # leased, and not answered
        self._asked = 0  # of the store
        self._has_more = False  # perhaps
        self._is_looking = False  # for what nobody told of
        self._answered: list[Stored] = []
        self._settle_timer: asyncio.TimerHandle | None = None
        self._begun: set[tuple[bytes, int]] = set()  # places of what the relay knows and is not answered
        self._on_ready: list[Callable[[], None]] = []

    # Departures

    def take(self, room: int) -> list[Parcel]:
        taken: list[Parcel] = []
        ready = self._ready
        while ready and len(taken) < room:
            parcel = ready.popleft()
            if parcel.is_begun and not parcel.is_put_on:
                self._begin(parcel)
            taken.append(parcel)
        return taken

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._on_ready.append(callback)

    def acknowledged(self, parcel: Stored) -> None:
        if parcel.life != self._life:
            return  # it is leased to nobody, or to another process
        parcel.is_answered = True
        if parcel.delivery is not None:
            self._held -= 1
            self._is_done(parcel)

    def returned(self, parcel: Stored) -> None:
        if parcel.life == self._life:
            self._ready.appendleft(parcel)

    def _begin(self, parcel: Stored) -> None:
        parcel.is_put_on = True
        if parcel.delivery is not None:
            self._begun.add(parcel.place)
        self._put_on(parcel.payload)

    # life

    @property
    def is_clear(self) -> bool:
        """Whether nothing keeps what is put in from leaving soon."""
        return self._queue is not None and not self._has_more and self._held + self._asked < AHEAD

    def own(self, queue: Queue) -> None:
        """It is ours alone, and nothing of it is leased."""
        self._queue = queue
        self.look()

    def forget(self) -> None:
        """Everything that was leased is not any more, or soon: it goes out again, if it was not settled."""
        self._queue = None
        self._life += 1
        self._ready.clear()
        self._early.clear()
        self._answered.clear()
        self._held = self._asked = 0
        self._is_looking = False

    def close(self) -> None:
        """What can be settled is; what was not sent may be taken by the next one at once."""
        self._settle()
        left = [parcel for parcel in self._ready if parcel.delivery is not None]
        if left:
            self._service.give_back(merged(left), failed=False)
        self.forget()

    # putting in, and taking

    def put(self, payloads: list[bytes], is_begun: bool) -> None:
        """They are being put in, in this order: they may leave already, if nothing older waits to be taken."""
        room = AHEAD - self._held - self._asked
        if self._queue is None or self._has_more or self._is_looking or len(payloads) > room:
            return
        for payload in payloads:
            parcel = Stored(self, self._life, payload, is_begun)
            self._ready.append(parcel)
            self._early.append(parcel)

    def expect(self, number: int, source: Source | None = None) -> None:
        """So many are being put in by the call that gathers: it takes them, too. source: who puts them in last."""
        self._settle()
        if self._queue is not None:
            self._ask(number, source)
        if self._early:
            self._tell()

    def mistrust(self) -> None:
        """Something was not put in: what left early may not be in the store, or later, or at another place."""
        for parcel in self._early:
            parcel.life = ORPHAN
        self._early.clear()
        self._ready = deque(parcel for parcel in self._ready if parcel.life == self._life)
        self._has_more = True
        self._loop.call_later(AGAIN_S, self._top_up)

    def look(self) -> None:
        """There may be something that nobody told of."""
        self._has_more = True
        self._top_up()

    def _top_up(self) -> None:
        if self._queue is not None and self._has_more and not self._asked and 2 * self._held <= AHEAD:
            self._ask(0)

    def _ask(self, number: int, source: Source | None = None) -> None:
        room = AHEAD - self._held - self._asked
        looks = self._has_more and not self._asked
        want = room if looks else min(number, room)
        if want <= 0 or self._queue is None:
            self._has_more = True
            return
        self._has_more = (self._has_more and not looks) or want < number
        self._is_looking = self._is_looking or looks
        self._asked += want
        done = partial(self._taken, self._life, want, looks)
        pipe = self._service.pipe(self._queue)
        pipe.take(source or self._taking, self._queue, want, done, leased=True)

    def _taken(
        self, life: int, want: int, looked: bool, got: list[Delivery] | StoreError, more: bool
    ) -> None:
        if life != self._life:
            if isinstance(got, list):
                self._service.give_back(got, failed=False)
            return
        self._asked -= want
        self._is_looking = self._is_looking and not looked
        if isinstance(got, StoreError):
            self._has_more = True
            self._loop.call_later(AGAIN_S, self._top_up)
            return
        number = sum(d.count for d in got)
        self._has_more = self._has_more or more or (looked and number == want)
        for delivery in got:
            self._admit(delivery)
        self._top_up()
        if self._ready:
            self._tell()

    def _tell(self) -> None:
        for tell in self._on_ready:
            tell()

    def _admit(self, delivery: Delivery) -> None:
        is_begun = delivery.origin == BEGUN
        for index, record in enumerate(delivery.records()):
            payload = payload_of(record)
            parcel = self._left_early(payload)
            if parcel is not None:
                parcel.stands(delivery, index, len(record) - 4)
                self._found(parcel)
                continue
            parcel = Stored(self, self._life, payload, is_begun)
            parcel.stands(delivery, index, len(record) - 4)
            if len(payload) > MAX_USER:  # nobody of ours put it in
                self._service.pipe(delivery.queue).reject(Source(), merged([parcel]), TOO_LARGE)
                continue
            parcel.is_put_on = parcel.place in self._begun
            if delivery.history:
                parcel.say_again()
            self._held += 1
            self._ready.append(parcel)

    def _left_early(self, payload: bytes) -> Stored | None:
        """The parcel that this message is, if it left already. The queue keeps the order in which they left.

        Those before it are not in the queue any more: somebody else took them.
        """
        early = self._early
        if not early:
            return None
        if early[0].stored != payload:
            place = next((i for i, parcel in enumerate(early) if parcel.stored == payload), None)
            if place is None:
                return None
            for _ in range(place):
                early.popleft().life = ORPHAN
        return early.popleft()

    def _found(self, parcel: Stored) -> None:
        if parcel.is_answered:
            self._is_done(parcel)
            return
        self._held += 1
        if parcel.is_put_on:
            self._begun.add(parcel.place)

    # settling

    def _is_done(self, parcel: Stored) -> None:
        self._begun.discard(parcel.place)
        self._answered.append(parcel)
        if len(self._answered) >= SETTLE_MANY:
            self._settle()
        elif self._settle_timer is None:
            self._settle_timer = self._loop.call_later(SETTLE_S, self._settle)

    def _settle(self) -> None:
        if self._settle_timer is not None:
            self._settle_timer.cancel()
            self._settle_timer = None
        if not self._answered or self._queue is None:
            return
        answered, self._answered = self._answered, []
        self._settle_all(self._life, self._queue, merged(answered))
        self._top_up()

    def _settle_all(self, life: int, queue: Queue, deliveries: list[Delivery]) -> None:
        def settled(error: StoreError | None) -> None:
            if error is not None and not isinstance(error, LeaseLost | QueueUnknown) and life == self._life:
                # a lease that is never settled would last as long as this process
                self._loop.call_later(SETTLE_AGAIN_S, self._settle_all, life, queue, deliveries)

        if life == self._life:
            self._service.pipe(queue).settle(self._settling, deliveries, settled)
