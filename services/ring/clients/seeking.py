"""Which queue a request means: clients name it each time, so most names are known without asking the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from services.queueing import decode_name
from services.ring.clients.conversation import ClientConversation
from services.ring.clients.holding import ClientInflow
from services.store import Queue, StoreError

Then = Callable[[Queue | StoreError], None]


class Seeking:
    """One connection's. Whoever has to wait for the store goes on in the order in which he asked, and nobody new
    begins meanwhile: so messages never pass each other, also when a queue was removed and made anew under them.
    """

    __slots__ = ("_conversation", "_inflow", "_line")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._line: deque[tuple[str, Then]] | None = None

    def held(self, name: bytes) -> Queue | None:
        """The queue, if it is known. It may have been removed since: then the store says QueueUnknown."""
        return self._conversation.service.store.catalogue.held(decode_name(name))

    def seek(self, name: bytes, then: Then, gone: Queue | None = None) -> None:
        """`then` is told the queue of this name. gone: what it was not any more."""
        key = decode_name(name)
        store = self._conversation.service.store
        if gone is not None and store.catalogue.held(key) is gone:
            store.catalogue.forget(key)
        self._inflow.hold()
        if self._line:
            self._line.append((key, then))
        else:
            self._line = deque([(key, then)])
            self._look(key)

    def _look(self, name: str) -> None:
        service = self._conversation.service
        service.background.run_read(service.store.catalogue.find(name), self._found)

    def _found(self, found: Queue | StoreError) -> None:
        assert self._line is not None
        _, then = self._line.popleft()
        then(found)
        if self._line:
            self._look(self._line[0][0])
        else:
            self._line = None
        self._inflow.free()
