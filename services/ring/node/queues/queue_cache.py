"""Find which queues are in the local store, and cache them (ring.md 5.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from protos.ring.lru import LruMap
from services.queueing import decode_name
from services.ring.node.outgoing.outgoing import AGAIN_S
from services.ring.node.outgoing.writer import PATIENCE_S
from services.ring.service import RingService
from services.store import Queue, StoreError
from services.store.catalogue import EVERYTHING
from services.store.model import QueueUnknown, is_internal

REMEMBERED = 10_000
Found = Callable[[Queue | StoreError | None], None]  # None: not in the local store


class QueueCache:
    """Queues by name. Absence is never cached: a queue may be created any moment."""

    def __init__(self, service: RingService) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._known: LruMap[Queue] = LruMap(REMEMBERED)
        self._past: LruMap[Queue] = LruMap(REMEMBERED)  # also deleted queues
        self._pending: dict[bytes, list[Found]] = {}  # lookups of this round of the loop
        self._stop = service.store.catalogue.watch(self._changed)

    def held(self, name: bytes) -> Queue | None:
        """Return the queue if it is cached. It may have been deleted since: then the store says so."""
        return self._known.get(name)

    def past(self, name: bytes) -> Queue | None:
        """Return the last queue that had this name: the store may still know the outcome of a request (5.4)."""
        return self._past.get(name)

    def forget(self, name: bytes) -> None:
        """Remove a name from the cache."""
        self._known.pop(name)

    def find(self, name: bytes, found: Found) -> None:
        """Look a queue up in the store. `found` gets a StoreError if the store is unavailable for too long."""
        if (others := self._pending.get(name)) is not None:
            others.append(found)
            return
        self._pending[name] = [found]
        self._loop.call_soon(self._find_for_all, name)

    def close(self) -> None:
        """Stop following the catalogue."""
        self._stop()

    def _find_for_all(self, name: bytes) -> None:
        """Look a name up once for all messages of one read."""
        callbacks = self._pending.pop(name)

        def found(answer: Queue | StoreError | None) -> None:
            for each in callbacks:
                each(answer)

        self._find(name, found, self._loop.time() + PATIENCE_S)

    def _find(self, name: bytes, found: Found, until: float) -> None:
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
            self._loop.call_later(AGAIN_S, self._find, name, found, until)

    def _changed(self, name: str) -> None:
        if name == EVERYTHING:
            self._known = LruMap(REMEMBERED)
        else:
            self._known.pop(name.encode("utf-8", "surrogateescape"))
