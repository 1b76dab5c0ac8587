"""Put USERs that are not queue operations into the group's inbox (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from services.ring.node.boxes.bindings import Bindings
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing.outgoing import AGAIN_S
from services.ring.node.outgoing.writer import PATIENCE_S
from services.ring.node.queues.serving import STORE_WIDE
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Queue, Source, StoreError
from services.store.model import QueueUnknown, Refusals, records

Done = Callable[[UserOutcome], None]  # DELIVERED, BURIED or UNSAFE


class Inbox:
    """The group's inbox. A message that it refuses becomes its dead letter: a full queue must not stop the ring."""

    def __init__(self, service: RingService, bindings: Bindings, origin: str) -> None:
        self._service = service
        self._bindings = bindings
        self._origin = origin
        self._source = Source(service.store.client())
        self._burying = Source(INTERNAL_CLIENT)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Callable[[], None]] = []
        bindings.on_change.append(self._call_waiting)

    @property
    def is_known(self) -> bool:
        """True once the store has been asked whether an inbox is bound."""
        return self._bindings.is_known

    @property
    def is_bound(self) -> bool:
        """True if an inbox is bound."""
        return self._bindings.inbox is not None

    def when_known(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once the bindings have been read."""
        self._waiting.append(callback)

    def _call_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def deliver(self, payload: bytes, done: Done) -> None:
        """Store a message. `done` gets the outcome, possibly at once; UNSAFE after PATIENCE_S."""
        self._put(records.encode(payload), done, self._loop.time() + PATIENCE_S)

    def _put(self, record: bytes, done: Done, until: float) -> None:
        queue = self._bindings.inbox
        if queue is None:  # unbound or deleted meanwhile
            done(UserOutcome.UNSAFE)
            return
        stored = partial(self._stored, queue, record, done, until)
        self._service.pipe(queue).messages.publish(self._source, queue, [record], self._origin, stored)

    def _stored(
        self, queue: Queue, record: bytes, done: Done, until: float, answer: Refusals | StoreError
    ) -> None:
        if answer == []:
            done(UserOutcome.DELIVERED)
            return
        error = answer if isinstance(answer, StoreError) else answer[0][1]
        if isinstance(error, QueueUnknown):
            self._bindings.refresh()
            self._again(record, done, until)
        elif isinstance(error, STORE_WIDE):
            self._again(record, done, until)
        else:
            self._bury(queue, record, done, until, error)

    def _bury(self, queue: Queue, record: bytes, done: Done, until: float, why: StoreError) -> None:
        def buried(error: StoreError | None) -> None:
            if error is None:
                done(UserOutcome.BURIED)
            else:
                self._again(record, done, until)

        pipe = self._service.pipe(queue)
        pipe.messages.bury(self._burying, queue, record, self._origin, why.reason, str(why), buried)

    def _again(self, record: bytes, done: Done, until: float) -> None:
        if self._loop.time() > until:
            done(UserOutcome.UNSAFE)
        else:
            self._loop.call_later(AGAIN_S, self._put, record, done, until)
