"""What waits to be sent to a domain: calls that are full, and the one that gathers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from services.store.model.keys import DomainKeys
from services.store.pipeline.call import Call
from services.store.pipeline.outcomes import tell
from services.store.pipeline.tallies import Tallies


class Waiting:
    """Operations gather in one call until it is sent or full; then the next one begins."""

    def __init__(self, keys: DomainKeys, tallies: Tallies, max_bytes: int = 64 << 20) -> None:
        self.pending_bytes = 0  # of records, gathered and not yet answered
        self.max_bytes = max_bytes
        self._keys = keys
        self._tallies = tallies
        self._full: deque[Call] = deque()
        self._gathering = Call(keys, tallies)
        self._resumes: list[Callable[[], None]] = []
        self._wake: Callable[[], None] = lambda: None

    def on_first(self, wake: Callable[[], None]) -> None:
        """`wake` is called when something waits where nothing did."""
        self._wake = wake

    def __bool__(self) -> bool:
        return bool(self._full or self._gathering.rounds)

    def call_for(self, messages: int, size: int, wanted: int, queues: int = 1, settles: int = 0) -> Call:
        """The call that the next operation goes into."""
        call = self._gathering
        if not call.has_room(messages, size, wanted, queues, settles):
            self._full.append(call)
            call = self._gathering = Call(self._keys, self._tallies)
        if not call.rounds:
            call.born = time.monotonic()
            self._wake()
        call.messages += messages
        call.bytes += size
        call.wanted += wanted
        call.settles += settles
        self.pending_bytes += size
        return call

    def packs_traced(self) -> None:
        """What was last asked for puts traced messages in: they begin entries (`traced_entries`)."""
        self._gathering.packs_traced = True

    def next(self) -> Call | None:
        """The oldest; from now on nothing is added to it."""
        if self._full:
            return self._full.popleft()
        return self._cut() if self._gathering.rounds else None

    def _cut(self) -> Call:
        call, self._gathering = self._gathering, Call(self._keys, self._tallies)
        return call

    def all(self) -> Iterator[Call]:
        """Every one of them, taken out."""
        while call := self.next():
            yield call

    def older_than(self, limit: float) -> Iterator[Call]:
        """Takes out those born before; settles alone are worth waiting longer for."""
        while self._full and self._full[0].born < limit:
            yield self._full.popleft()
        if self._gathering.rounds and self._gathering.born < limit and not self._gathering.only_settles():
            yield self._cut()

    def take_over_settles(self, call: Call, *, once: bool = False) -> None:
        """Those of a call that was certainly not carried out go with the next one; once: and not again from there."""
        if not self._gathering.rounds:
            self._gathering.born = time.monotonic()
        call.move_settles(self._gathering)
        self._gathering.has_moved |= once
        self._wake()

    # how much

    @property
    def congested(self) -> bool:
        return self.pending_bytes > self.max_bytes

    def when_clear(self, resume: Callable[[], None]) -> None:
        """Calls back once, when there is room again."""
        self._resumes.append(resume)

    def answered(self, call: Call) -> None:
        """Its records are held no longer."""
        self.pending_bytes -= call.bytes
        if self._resumes and self.pending_bytes <= self.max_bytes // 2:
            resumes, self._resumes = self._resumes, []
            for resume in resumes:
                tell(resume)
