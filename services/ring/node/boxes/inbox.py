"""What comes round and is no queue operation goes into the inbox of the group (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from services.ring.node.boxes.bindings import Bindings
from services.ring.node.counts import BURIED, DELIVERED, UNSAFE
from services.ring.node.outgoing.outgoing import AGAIN_S
from services.ring.node.outgoing.storing import PATIENCE_S
from services.ring.node.queues.serving import STORE_WIDE
from services.ring.service import RingService
from services.store import INTERNAL_CLIENT, Queue, Source, StoreError
from services.store.model import QueueUnknown, Refusals, records

Told = Callable[[str], None]  # DELIVERED, BURIED or UNSAFE


class Inbox:
    """A message that the inbox refuses becomes a dead letter of it: one full queue must not stop the ring for all."""

    def __init__(self, service: RingService, bindings: Bindings, origin: str) -> None:
        self._service = service
        self._bindings = bindings
        self._origin = origin
        self._source = Source(service.store.client())
        self._burying = Source(INTERNAL_CLIENT)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Callable[[], None]] = []
        bindings.on_change.append(self._look)

    @property
    def is_known(self) -> bool:
        """Whether there is one: at the start the store has not been asked yet."""
        return self._bindings.is_known

    @property
    def is_bound(self) -> bool:
        return self._bindings.inbox is not None

    def when_known(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)

    def _look(self) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def deliver(self, payload: bytes, told: Told) -> None:
        """`told` may be called at once; UNSAFE: the store took it for so long that nobody waits for it any more."""
        self._put(records.encode(payload), told, self._loop.time() + PATIENCE_S)

    def _put(self, record: bytes, told: Told, until: float) -> None:
        queue = self._bindings.inbox
        if queue is None:  # it was unbound meanwhile, or is gone
            told(UNSAFE)
            return
        done = partial(self._stored, queue, record, told, until)
        self._service.pipe(queue).messages.publish(self._source, queue, [record], self._origin, done)

    def _stored(
        self, queue: Queue, record: bytes, told: Told, until: float, answer: Refusals | StoreError
    ) -> None:
        if answer == []:
            told(DELIVERED)
            return
        error = answer if isinstance(answer, StoreError) else answer[0][1]
        if isinstance(error, QueueUnknown):
            self._bindings.look()
            self._again(record, told, until)
        elif isinstance(error, STORE_WIDE):
            self._again(record, told, until)
        else:
            self._bury(queue, record, told, until, error)

    def _bury(self, queue: Queue, record: bytes, told: Told, until: float, why: StoreError) -> None:
        def buried(error: StoreError | None) -> None:
            if error is None:
                told(BURIED)
            else:
                self._again(record, told, until)

        pipe = self._service.pipe(queue)
        pipe.messages.bury(self._burying, queue, record, self._origin, why.reason, str(why), buried)

    def _again(self, record: bytes, told: Told, until: float) -> None:
        if self._loop.time() > until:
            told(UNSAFE)
        else:
            self._loop.call_later(AGAIN_S, self._put, record, told, until)
