"""Checks before an operation enters a call: store availability, access to the queues, and ack levels."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from services.store.model.errors import AckLevelLost, StoreError, StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.model.operations import Source
from services.store.model.queues import Queue
from services.store.pipeline.tallies import Tallies
from services.store.pipeline.waiting import Waiting

log = logging.getLogger(__name__)


class Gate:
    """A circuit breaker, shut until `open`. Shut for longer than `patience_s`, it refuses operations at once."""

    def __init__(self, keys: DomainKeys, observe: Callable[[str, int], None], patience_s: float) -> None:
        """Report the reason and number of refusals to `observe`."""
        self.keys = keys
        self.tallies = Tallies(self.count)
        self.waiting = Waiting(keys, self.tallies)
        self.call_for = self.waiting.call_for
        self.may_refuse = True  # False: `refuses` would return None and is not called
        self.shut_since: float | None = time.monotonic()
        self.reason = StoreUnavailable("the store has not been reached yet")
        self.is_closing = False
        self.patience_s = patience_s
        self._observe = observe

    def count(self, error: StoreError, number: int = 1) -> None:
        """Report refusals to the store's observer."""
        self._observe(error.reason, number)

    def open(self, session: str) -> None:
        """Admit operations: the store answers."""
        if self.shut_since is not None:
            log.info("connected to the store", extra={"action": "store_there", "session": session})
        self.shut_since = None
        self.may_refuse = False

    def shut(self, error: StoreError) -> None:
        """Note that the store is unavailable. The patience counts from the first call since `open`."""
        self.may_refuse = True
        down = error if isinstance(error, StoreUnavailable) else StoreUnavailable(str(error))
        if self.shut_since is None or (down.names_disk and not self.reason.names_disk):
            log.warning("store unavailable: %s", error, extra={"action": "store_away"})
        if self.shut_since is None:
            self.shut_since = time.monotonic()
        self.reason = down

    def close(self) -> None:
        """Refuse all operations from now on: the process is stopping."""
        self.is_closing = self.may_refuse = True

    def refuses(self) -> StoreError | None:
        """Return why any operation would be refused now, or None."""
        if self.is_closing:
            return StoreUnavailable("this process is stopping")
        if self.shut_since is not None and time.monotonic() - self.shut_since > self.patience_s:
            return self.reason
        return None

    def refusal(
        self, source: Source, used: Sequence[Queue] = (), goals: Sequence[tuple[Queue, int]] = ()
    ) -> StoreError | None:
        """Return why an operation cannot begin, and count the refusal, or return None.

        The store is unavailable, the source is denied access to a queue, or the store cannot keep the ack level of a
        goal. goals: queues to publish to, with the number of messages.
        """
        into = [queue for queue, _ in goals]
        error, blamed = self.refuses(), next((queue for queue in (*used, *into)), None)
        for queue in (*used, *into):
            if error is None:
                error, blamed = source.refusal(queue), queue
        for queue in into:
            if error is None and queue.unkept:
                error, blamed = AckLevelLost(), queue
        if error is not None:
            self.tallies.of(blamed).refuse(error, 1)
            self.tallies.refuse_goals(goals)
        return error
