"""The gate before a domain's calls: whether the store takes operations now, and whether a queue takes this one."""

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
    """Shut until `open`. While it is shut for longer than the patience, operations are refused within the same step."""

    def __init__(self, keys: DomainKeys, observe: Callable[[str, int], None], patience_s: float) -> None:
        """observe: told the reason and number of all that is refused."""
        self.keys = keys
        self.tallies = Tallies(self.count)
        self.waiting = Waiting(keys, self.tallies)
        self.call_for = self.waiting.call_for
        self.may_refuse = True  # False: `refuses` would answer None and is not called
        self.shut_since: float | None = time.monotonic()
        self.reason = StoreUnavailable("the store was not reached yet")
        self.is_closing = False
        self.patience_s = patience_s
        self._observe = observe

    def count(self, error: StoreError, number: int = 1) -> None:
        self._observe(error.reason, number)

    def open(self, session: str) -> None:
        """The store answers."""
        if self.shut_since is not None:
            log.info("the store is there", extra={"action": "store_there", "session": session})
        self.shut_since = None
        self.may_refuse = False

    def shut(self, error: StoreError) -> None:
        """The store does not answer, for this reason; the time counts from the first."""
        self.may_refuse = True
        down = error if isinstance(error, StoreUnavailable) else StoreUnavailable(str(error))
        if self.shut_since is None or (down.names_disk and not self.reason.names_disk):
            log.warning("the store is away: %s", error, extra={"action": "store_away"})
        if self.shut_since is None:
            self.shut_since = time.monotonic()
        self.reason = down

    def close(self) -> None:
        """Refuse everything from now on."""
        self.is_closing = self.may_refuse = True

    def refuses(self) -> StoreError | None:
        """Return why every operation would be refused at once, or None."""
        if self.is_closing:
            return StoreUnavailable("this process is stopping")
        if self.shut_since is not None and time.monotonic() - self.shut_since > self.patience_s:
            return self.reason
        return None

    def refusal(
        self, source: Source, used: Sequence[Queue] = (), goals: Sequence[tuple[Queue, int]] = ()
    ) -> StoreError | None:
        """Return why an operation cannot begin, counted, or None.

        The store is away, the source may not use one of the queues, or a goal does not keep its ack level. goals: with
        how many messages are to be put in.
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
