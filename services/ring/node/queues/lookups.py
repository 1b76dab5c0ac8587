"""Which queues are here: asked of the store, and remembered for as long as they may be (ring.md 5.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from protos.ring.recent import Recent
from services.queueing import decode_name
from services.ring.node.outgoing.outgoing import AGAIN_S
from services.ring.node.outgoing.storing import PATIENCE_S
from services.ring.service import RingService
from services.store import Queue, StoreError
from services.store.catalogue import EVERYTHING
from services.store.model import QueueUnknown, is_internal

REMEMBERED = 10_000
Found = Callable[[Queue | StoreError | None], None]  # None: it is not here


class Lookups:
    """That a queue is not here is never remembered: it may be made any moment."""

    def __init__(self, service: RingService) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._known: Recent[Queue] = Recent(REMEMBERED)
        self._past: Recent[Queue] = Recent(REMEMBERED)  # also those that are gone
        self._asking: dict[bytes, list[Found]] = {}  # in this round of the loop
        self._stop = service.store.catalogue.watch(self._changed)

    def held(self, name: bytes) -> Queue | None:
        """The queue, if it is known without asking the store. It may be gone: then the store says so."""
        return self._known.get(name)

    def past(self, name: bytes) -> Queue | None:
        """The last one that had this name: the store may still know what came of a request for it (5.4)."""
        return self._past.get(name)

    def forget(self, name: bytes) -> None:
        self._known.pop(name)

    def ask(self, name: bytes, found: Found) -> None:
        """A StoreError: the store did not answer for as long as anybody may wait."""
        if (others := self._asking.get(name)) is not None:
            others.append(found)
            return
        self._asking[name] = [found]
        self._loop.call_soon(self._ask_for_all, name)

    def close(self) -> None:
        self._stop()

    def _ask_for_all(self, name: bytes) -> None:
        """A read brings many messages for one queue: each would else be a task of its own."""
        asking = self._asking.pop(name)

        def found(answer: Queue | StoreError | None) -> None:
            for each in asking:
                each(answer)

        self._ask(name, found, self._loop.time() + PATIENCE_S)

    def _ask(self, name: bytes, found: Found, until: float) -> None:
        text = decode_name(name)
        if is_internal(text):
            self._loop.call_soon(found, None)
            return
        self._service.background.run_read(
            self._service.store.catalogue.find(text), partial(self._answered, name, found, until)
        )

    def _answered(self, name: bytes, found: Found, until: float, answer: Queue | StoreError) -> None:
        if isinstance(answer, Queue):
            self._known.put(name, answer)
            self._past.put(name, answer)
            found(answer)
        elif isinstance(answer, QueueUnknown):
            found(None)
        elif self._loop.time() > until:
            found(answer)
        else:
            self._loop.call_later(AGAIN_S, self._ask, name, found, until)

    def _changed(self, name: str) -> None:
        if name == EVERYTHING:
            self._known = Recent(REMEMBERED)
        else:
            self._known.pop(name.encode("utf-8", "surrogateescape"))
