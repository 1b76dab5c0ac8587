"""What waits for the successor: the Departures of what is in the store (ring.md 2.2, 4.5).

The call that puts messages in takes them, too, so neither costs a wait of its own. If nothing waits before them, they
may leave while that call is under way: a trip around the ring then waits for one disk at a time, not for that of each
node in turn. They are put in all the same, and the predecessor is answered only when they are. They leave in the order
of the queue: whoever puts something in says so here first, and all of them are one source to the store (`putting`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from protos.ring import MAX_USER
from services.ring.node.outgoing.parcels import Stored, merged, payload_of
from services.ring.node.outgoing.passage import Parcel
from services.ring.node.outgoing.settling import Settling
from services.ring.node.outgoing.underway import Underway
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source, StoreError
from services.store.model import KEEPER

BEGUN = "ring begun"  # origin in the store of what this node put on the ring
PASSED = "ring passed"  # and of what it passes on
AGAIN_S = 0.25  # what the store refused is asked again after this long
AHEAD = 256  # messages leased and not answered, at most
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
        self.putting = Source(KEEPER, begins_traces=False)  # of all that is put into the queue
        self._settling = Settling(service, self._top_up)
        self._ready: deque[Stored] = deque()
        self.underway = Underway()  # what left before the queue has shown it
        self._held = 0  # leased, and not answered
        self._asked = 0  # of the store
        self._has_more = False  # perhaps
        self._is_looking = False  # for what nobody told of
        self._is_doubted = False  # the last that was put in was refused
        self._begun: set[tuple[bytes, int]] = set()  # places of what the relay knows and is not answered
        self._on_ready: list[Callable[[], None]] = []

    def __len__(self) -> int:
        """How many messages the successor may have now."""
        return len(self._ready)

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

    @property
    def is_early(self) -> bool:
        """Whether what is put in now leaves while the store still writes it."""
        waits = self._has_more or self._is_looking or self._is_doubted
        return self._queue is not None and not waits

    def own(self, queue: Queue) -> None:
        """It is ours alone, and nothing of it is leased."""
        self._queue = queue
        self._settling.use(queue)
        self.look()

    def forget(self) -> None:
        """Everything that was leased is not any more, or soon: it goes out again, if it was not settled."""
        self._queue = None
        self._life += 1
        self._settling.use(None)
        self._ready.clear()
        self.underway.clear()
        self._held = self._asked = 0
        self._is_looking = False

    def close(self) -> None:
        """What can be settled is; what was not sent may be taken by the next one at once."""
        self._settling.flush()
        left = [parcel for parcel in self._ready if parcel.delivery is not None]
        if left:
            self._service.give_back(merged(left), failed=False)
        self.forget()

    # putting in, and taking

    def put(self, payloads: list[bytes], is_begun: bool) -> list[Stored]:
        """They are put in next, in this order, by `putting`; then `expect`, and `are_safe` for what this answers.

        They leave already, if nothing older waits to be taken; but not at each try of what the store refuses.
        """
        room = AHEAD - max(self._held + self._asked, len(self.underway))
        if not self.is_early or len(payloads) > room:
            self._has_more = True  # these are looked for, too: what comes later must not be faster
            return []
        parcels = [Stored(self, self._life, payload, is_begun) for payload in payloads]
        self.underway.leave(parcels)
        self._ready.extend(parcels)
        return parcels

    def expect(self, number: int) -> None:
        """So many are being put in by the call that gathers: it takes them, too."""
        self._settling.flush()
        if self._queue is not None:
            self._ask(number)
        if self._ready:
            self._tell()

    def are_safe(self, parcels: list[Stored]) -> None:
        """They are in the store, and it takes more."""
        self._is_doubted = False
        for parcel in parcels:
            parcel.is_safe = True

    def mistrust(self) -> None:
        """Something was not put in: what left early may not be in the store."""
        self.underway.orphan()
        self._drop_orphans()
        self._has_more = self._is_doubted = True
        self._loop.call_later(AGAIN_S, self._top_up)

    def look(self) -> None:
        """There may be something that nobody told of."""
        self._has_more = True
        self._top_up()

    def _top_up(self) -> None:
        if self._queue is not None and self._has_more and not self._asked and 2 * self._held <= AHEAD:
            self._ask(0)

    def _drop_orphans(self) -> None:
        self._ready = deque(parcel for parcel in self._ready if parcel.life == self._life)

    def _ask(self, number: int) -> None:
        room = AHEAD - self._held - self._asked
        looks = self._has_more and not self._asked
        want = room if looks else min(number, room)
        if want <= 0 or self._queue is None:
            self._has_more = True
            return
        self._has_more = (self._has_more and not looks) or want < number
        self._is_looking = self._is_looking or looks
        self._asked += want
        done = partial(self._taken, self._life, want, self.underway.safe() if looks else None)
        self._service.pipe(self._queue).messages.take(
            self.putting.behind(), self._queue, want, done, leased=True
        )

    def _taken(
        self,
        life: int,
        want: int,
        safe: set[Stored] | None,
        got: list[Delivery] | StoreError,
        more: bool,
    ) -> None:
        """safe: this was to find out what else is in the queue; they were in the store before, and not shown."""
        if life != self._life:
            if isinstance(got, list):
                self._service.give_back(got, failed=False)
            return
        self._asked -= want
        looked = safe is not None
        self._is_looking = self._is_looking and not looked
        if isinstance(got, StoreError):
            self._has_more = True
            self._loop.call_later(AGAIN_S, self._top_up)
            return
        number = sum(d.count for d in got)
        self._has_more = self._has_more or more or (looked and number == want)
        for delivery in got:
            self._admit(delivery)
        if safe and number < want and not more:
            self.underway.are_gone(safe)
            self._drop_orphans()
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
            parcel = self.underway.shown(payload, is_begun)
            if parcel is not None:
                parcel.stands(delivery, index, len(record) - 4)
                self._found(parcel)
                continue
            parcel = Stored(self, self._life, payload, is_begun)
            parcel.stands(delivery, index, len(record) - 4)
            if len(payload) > MAX_USER:  # nobody of ours put it in
                self._service.pipe(delivery.queue).messages.reject(
                    Source(INTERNAL_CLIENT), merged([parcel]), TOO_LARGE
                )
                continue
            parcel.is_put_on = parcel.place in self._begun
            if delivery.history:
                parcel.say_again()
            self._held += 1
            self._ready.append(parcel)

    def _found(self, parcel: Stored) -> None:
        if parcel.is_answered:
            self._is_done(parcel)
            return
        self._held += 1
        if parcel.is_put_on:
            self._begun.add(parcel.place)

    def _is_done(self, parcel: Stored) -> None:
        self._begun.discard(parcel.place)
        self._settling.add(parcel)
