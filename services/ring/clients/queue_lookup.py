"""Find the queue that a request names; most names are known without asking the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from services.queueing import decode_name
from services.ring.clients.conversation import ClientConversation
from services.ring.clients.inflow import ClientInflow
from services.store import Queue, StoreError

Callback = Callable[[Queue | StoreError], None]


class QueueLookup:
    """The queue lookups of one connection.

    Requests that wait for the store continue in their order, and no new request begins meanwhile: so messages never
    overtake each other, even when a queue was deleted and made again.
    """

    __slots__ = ("_conversation", "_inflow", "_waiting")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._waiting: deque[tuple[str, Callback]] | None = None

    def held(self, name: bytes) -> Queue | None:
        """Return the queue if it is cached. It may have been deleted since: then the store answers QueueUnknown."""
        return self._conversation.service.store.catalogue.held(decode_name(name))

    def seek(self, name: bytes, then: Callback, gone: Queue | None = None) -> None:
        """Look up a queue in the store and pass the result to `then`. gone: a cached queue that no longer exists."""
        key = decode_name(name)
        store = self._conversation.service.store
        if gone is not None and store.catalogue.held(key) is gone:
            store.catalogue.forget(key)
        self._inflow.hold()
        if self._waiting:
            self._waiting.append((key, then))
        else:
            self._waiting = deque([(key, then)])
            self._find(key)

    def _find(self, name: str) -> None:
        service = self._conversation.service
        service.background.run_read(service.store.catalogue.find(name), self._found)

    def _found(self, found: Queue | StoreError) -> None:
        assert self._waiting is not None
        _, then = self._waiting.popleft()
        then(found)
        if self._waiting:
            self._find(self._waiting[0][0])
        else:
            self._waiting = None
        self._inflow.free()
