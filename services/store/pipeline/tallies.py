"""What this process does with each queue: counted where answers come in, read now and then (docs/store.md, Samples).

Counting costs a few additions an answer, so it goes on whether anybody reads or not.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from services.store.model.buckets import CLASSES, PUT_S, WAIT_S
from services.store.model.clock import Clock
from services.store.model.errors import StoreError
from services.store.model.operations import Commit, IdempotentPublish, OnceOnly, Round
from services.store.model.queues import Queue
from services.store.pipeline.metering import Done, Hear

Observe = Callable[[StoreError, int], None]

NUMBERS = ("accepted", "accepted_octets", "given", "given_octets", "acked", "returned", "rejected")  # metered
SUMMED = (*NUMBERS, "refused_puts")
_WAIT_MS = tuple(bound * 1000 for bound in WAIT_S)


class Tally:
    """One queue's numbers since `since` (monotonic): messages, octets of bodies and attributes, classes of times."""

    __slots__ = (
        *("accepted", "accepted_octets", "acked", "given", "given_octets", "name", "observe", "put"),
        *("refused", "refused_puts", "rejected", "returned", "since", "told", "wait"),
    )

    def __init__(self, name: str, since: float, observe: Observe) -> None:
        self.name = name  # '' for what no queue is to blame for
        self.since = since
        self.observe = observe
        self.accepted = self.accepted_octets = 0
        self.given = self.given_octets = 0
        self.acked = self.returned = self.rejected = 0
        self.refused: Counter[str] = Counter()  # by the reason of the error
        self.refused_puts = 0  # messages that were to be put in
        self.put = [0] * CLASSES  # messages by the time until they were durable (PUT_S)
        self.wait = [0] * CLASSES  # by their age when they were first given out (WAIT_S)
        self.told: Done | None = None  # of all that, what was metered already

    def has_any(self) -> bool:
        """Whether anything was counted."""
        counted = self.accepted or self.given or self.acked or self.returned or self.rejected
        return bool(counted or self.refused or self.refused_puts)

    def refuse(self, error: StoreError, number: int) -> None:
        """So many messages, or requests that are not about messages."""
        self.refused[error.reason] += number
        self.observe(error, number)

    def refuse_puts(self, error: StoreError, number: int) -> None:
        """So many messages that were to be put in."""
        self.refused_puts += number
        self.refuse(error, number)

    def add(self, other: Tally) -> None:
        """What was counted before this one began: it goes back as far."""
        self.since = min(self.since, other.since)
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused.update(other.refused)
        self.put = [a + b for a, b in zip(self.put, other.put, strict=True)]
        self.wait = [a + b for a, b in zip(self.wait, other.wait, strict=True)]
        if other.told is not None:
            self.told = other.told if self.told is None else self.told.plus(other.told)

    def untold(self) -> Done | None:
        """What was counted since this was last asked; None: nothing."""
        numbers = tuple(getattr(self, name) for name in NUMBERS)
        told = self.told
        if told is not None and told.numbers == numbers and told.refused == self.refused:
            return None
        self.told = done = Done(numbers, Counter(self.refused), self.put[:], self.wait[:])
        return done if told is None else done.plus(told, -1)


class Tallies:
    """Those of a domain. Until `keep` they all are one, which nobody reads: processes come and go, and so do queues.

    Answers look for their tally when they come: the one of an earlier look has been read by then.
    """

    def __init__(self, observe: Observe) -> None:
        """observe: told of every refusal."""
        self.clock = Clock()  # the store's
        self._observe = observe
        self._since = time.monotonic()
        self._is_kept = self._is_read = False
        self._hear: Hear | None = None
        self._tallies: dict[str, Tally] = {}
        self._unread = Tally("", self._since, observe)
        self._class = 0  # of the time that the answers at hand took

    def keep(self) -> None:
        """From now on somebody reads them."""
        self._is_kept, self._is_read, self._since = True, True, time.monotonic()

    def meter(self, hear: Hear) -> None:
        """From now on somebody is told of them, too."""
        self._is_kept, self._hear = True, hear

    def of(self, queue: Queue | None) -> Tally:
        """None: no queue is to blame."""
        name = queue.name if queue is not None else ""
        found = self._tallies.get(name)
        return self._new(name) if found is None else found

    def _new(self, name: str) -> Tally:
        if not self._is_kept:
            return self._unread
        tally = self._tallies[name] = Tally(name, self._since, self._observe)
        return tally

    def read(self, now: float) -> list[Tally]:
        """All in which anything was counted; the next ones begin now."""
        self.tell()
        tallies, self._tallies, self._since = self._tallies, {}, now
        return [tally for tally in tallies.values() if tally.has_any()]

    def tell(self) -> None:
        """What came since the last time is metered. If nobody reads them, they have done their work."""
        if self._hear is None:
            return
        for tally in self._tallies.values():
            if tally.name and (done := tally.untold()) is not None:
                self._hear(tally.name, done)
        if not self._is_read:
            self._tallies = {}

    def put_back(self, tallies: Iterable[Tally]) -> None:
        """They were read in vain."""
        for tally in tallies:
            found = self._tallies.get(tally.name)
            (self._new(tally.name) if found is None else found).add(tally)

    # counting

    def answered(self, seconds: float) -> None:
        """The answers that are handed out now took so long."""
        self._class = bisect_left(PUT_S, seconds)

    def accept(self, queue: Queue, number: int, octets: int) -> None:
        """So many messages are durable."""
        tally = self.of(queue)
        tally.accepted += number
        tally.accepted_octets += octets
        tally.put[self._class] += number

    def give(self, queue: Queue, reply: list[Any]) -> None:
        """What a take, or a pull, was answered: eight values a stretch, behind the first one (lua/take.lua)."""
        tally, now_ms = self.of(queue), self.clock.now_ms()
        if len(reply) == 9:
            _, _, _, _, _, number, blob, stamp, history = reply
            tally.given += number
            tally.given_octets += len(blob) - 4 * number
            if not history:
                tally.wait[bisect_left(_WAIT_MS, now_ms - int(stamp.partition(b" ")[0]))] += number
            return
        counts = reply[5::8]
        number = sum(counts)
        tally.given += number
        tally.given_octets += sum(map(len, reply[6::8])) - 4 * number
        wait, last, at = tally.wait, None, 0
        for stamp, history, count in zip(reply[7::8], reply[8::8], counts, strict=True):
            if history:
                continue  # it was given out before
            if stamp != last:  # what came in one call is of one age
                last = stamp
                at = bisect_left(_WAIT_MS, now_ms - int(stamp.partition(b" ")[0]))
            wait[at] += count

    def refuse_once(self, once: OnceOnly, error: StoreError, blamed: Queue | None) -> None:
        """It is one refusal, of the queue that is to blame, and every message that it was to put in was refused."""
        self.of(blamed).refuse(error, 1)
        self.refuse_goals(_puts_of(once))

    def refuse_goals(self, goals: Iterable[tuple[Queue, int]]) -> None:
        """So many messages were to be put into each; the refusal is counted."""
        for queue, number in goals:
            if number:
                self.of(queue).refused_puts += number

    def fail(self, rounds: Iterable[Round], error: StoreError) -> None:
        """A whole call was refused, or its outcome is unknown: so was every message that it asked about."""
        reason = error.reason
        for round_ in rounds:
            for work in round_.works.values():
                puts = sum(len(publish.records) for publish in work.publishes)
                self.refuse_goals([(work.queue, puts)])
                number = (
                    puts
                    + len(work.takes)
                    + len(work.acks)
                    + len(work.returns)
                    + len(work.rejects)
                    + len(work.buries)
                )
                self._fail(work.queue, reason, number + len(work.notes) + len(work.counts))
            for once in round_.commits:
                self._fail(_queue_of(once), reason, 1)
                self.refuse_goals(_puts_of(once))
            for send in round_.sends:
                self._fail(None, reason, send.count)
            self._fail(None, reason, len(round_.heads))

    def _fail(self, queue: Queue | None, reason: str, number: int) -> None:
        if number:
            self.of(queue).refused[reason] += number


def _puts_of(once: OnceOnly) -> list[tuple[Queue, int]]:
    """How many messages it puts into which queue."""
    match once:
        case Commit(parts=parts):
            return [(part.queue, len(part.records)) for part in parts]
        case IdempotentPublish(reason=""):
            return [(once.queue, 1)]
    return []


def _queue_of(once: OnceOnly) -> Queue | None:
    """The one to blame where nothing says which: of a commit, the first."""
    if isinstance(once, Commit):
        return once.parts[0].queue if once.parts else None
    return once.queue
