"""Operations that wait to be sent to a domain."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from services.store.model.keys import DomainKeys
from services.store.pipeline.call import Call
from services.store.pipeline.outcomes import notify
from services.store.pipeline.tallies import Tallies


class Waiting:
    """A queue of calls: those that are full, and the one to which operations are added."""

    def __init__(self, keys: DomainKeys, tallies: Tallies) -> None:
        """Begin empty. The pipe sets `max_bytes` and `wake`."""
        self.pending_bytes = 0  # of records that are not yet answered
        self.max_bytes = 0
        self.wake: Callable[[], None] = lambda: None  # called when the first operation is added
        self._keys = keys
        self._tallies = tallies
        self._full: deque[Call] = deque()
        self._gathering = Call(keys, tallies)
        self._resumes: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return bool(self._full or self._gathering.rounds)

    def call_for(self, messages: int, size: int, wanted: int, queues: int = 1, settles: int = 0) -> Call:
        """Return the call to which the next operation, of this size, is to be added."""
        call = self._gathering
        if not call.has_room(messages, size, wanted, queues, settles):
            self._full.append(call)
            call = self._gathering = Call(self._keys, self._tallies)
        if not call.rounds:
            call.created_at = time.monotonic()
            self.wake()
        call.messages += messages
        call.bytes += size
        call.wanted += wanted
        call.settles += settles
        self.pending_bytes += size
        return call

    def packs_traced(self) -> None:
        """Note that the last operation publishes traced messages, which begin entries (`traced_entries`)."""
        self._gathering.packs_traced = True

    def next(self) -> Call | None:
        """Take out the oldest call, or return None. Nothing is added to it afterwards."""
        if self._full:
            return self._full.popleft()
        return self._cut() if self._gathering.rounds else None

    def _cut(self) -> Call:
        call, self._gathering = self._gathering, Call(self._keys, self._tallies)
        return call

    def all(self) -> Iterator[Call]:
        """Take out all calls, one after the other."""
        while call := self.next():
            yield call

    def older_than(self, limit: float) -> Iterator[Call]:
        """Take out calls created before `limit`, except one of settles only, which may wait longer."""
        while self._full and self._full[0].created_at < limit:
            yield self._full.popleft()
        gathering = self._gathering
        if gathering.rounds and gathering.created_at < limit and not gathering.only_settles():
            yield self._cut()

    def take_over_settles(self, call: Call, *, once: bool = False) -> None:
        """Add the settles of a call that was certainly not executed to the next one. once: not again after that."""
        if not self._gathering.rounds:
            self._gathering.created_at = time.monotonic()
        call.move_settles(self._gathering)
        self._gathering.has_moved |= once
        self.wake()

    @property
    def congested(self) -> bool:
        """Return True if the pending octets exceed the limit: edges must stop reading."""
        return self.pending_bytes > self.max_bytes

    def when_clear(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when the pending octets have fallen to half of the limit."""
        self._resumes.append(resume)

    def answered(self, call: Call) -> None:
        """Subtract an answered call's octets from the pending ones."""
        self.pending_bytes -= call.bytes
        if self._resumes and self.pending_bytes <= self.max_bytes // 2:
            resumes, self._resumes = self._resumes, []
            for resume in resumes:
                notify(resume)
