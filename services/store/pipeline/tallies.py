"""Count this process's activity per queue as replies arrive (docs/store.md, Samples).

Counting costs a few additions per reply, so it is not switched off where no reader is registered.
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
from services.store.pipeline.metering import Activity, ReportActivity

Observe = Callable[[StoreError, int], None]

NUMBERS = ("accepted", "accepted_octets", "given", "given_octets", "acked", "returned", "rejected")  # metered
SUMMED = (*NUMBERS, "refused_puts")
_WAIT_MS = tuple(bound * 1000 for bound in WAIT_S)


class Tally:
    """One queue's counts since `since` (monotonic): messages, octets of bodies and attributes, histograms."""

    __slots__ = (
        *("accepted", "accepted_octets", "acked", "given", "given_octets", "name", "observe", "put"),
        *("refused", "refused_puts", "rejected", "reported", "returned", "since", "wait"),
    )

    def __init__(self, name: str, since: float, observe: Observe) -> None:
        """Begin at 0. observe: receives every refusal."""
        self.name = name  # '' for refusals that concern no queue
        self.since = since
        self.observe = observe
        self.accepted = self.accepted_octets = 0
        self.given = self.given_octets = 0
        self.acked = self.returned = self.rejected = 0
        self.refused: Counter[str] = Counter()  # by the reason of the error
        self.refused_puts = 0  # refused messages of publishes
        self.put = [0] * CLASSES  # messages by the time until they were durable (PUT_S)
        self.wait = [0] * CLASSES  # messages by their age at first delivery (WAIT_S)
        self.reported: Activity | None = None  # the part of it that `unreported` has returned

    def has_any(self) -> bool:
        """Return whether anything was counted."""
        counted = self.accepted or self.given or self.acked or self.returned or self.rejected
        return bool(counted or self.refused or self.refused_puts)

    def refuse(self, error: StoreError, number: int) -> None:
        """Count refused messages, or refused requests without messages."""
        self.refused[error.reason] += number
        self.observe(error, number)

    def refuse_puts(self, error: StoreError, number: int) -> None:
        """Count refused messages of publishes."""
        self.refused_puts += number
        self.refuse(error, number)

    def add(self, other: Tally) -> None:
        """Add the counts of an earlier tally."""
        self.since = min(self.since, other.since)
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused.update(other.refused)
        self.put = [a + b for a, b in zip(self.put, other.put, strict=True)]
        self.wait = [a + b for a, b in zip(self.wait, other.wait, strict=True)]
        if other.reported is not None:
            self.reported = other.reported if self.reported is None else self.reported.plus(other.reported)

    def unreported(self) -> Activity | None:
        """Return the activity since the last call, None if there was none."""
        numbers = tuple(getattr(self, name) for name in NUMBERS)
        before = self.reported
        if before is not None and before.numbers == numbers and before.refused == self.refused:
            return None
        self.reported = activity = Activity(numbers, Counter(self.refused), self.put[:], self.wait[:])
        return activity if before is None else activity.plus(before, -1)


class Tallies:
    """The tallies of a domain's queues. Until `keep` or `meter`, one tally counts all and is never read.

    Look a tally up (`of`) when a reply arrives: an earlier one may have been read meanwhile.
    """

    def __init__(self, observe: Observe) -> None:
        """Begin without tallies per queue. observe: receives every refusal."""
        self.clock = Clock()  # the store's
        self._observe = observe
        self._since = time.monotonic()
        self._is_kept = self._is_read = False
        self._report_activity: ReportActivity | None = None
        self._tallies: dict[str, Tally] = {}
        self._unread = Tally("", self._since, observe)
        self._class = 0  # histogram class of the current call's latency

    def keep(self) -> None:
        """Keep a tally per queue for `read` from now on."""
        self._is_kept, self._is_read, self._since = True, True, time.monotonic()

    def meter(self, report_activity: ReportActivity) -> None:
        """Keep a tally per queue and report it to `report_activity` whenever `report` is called."""
        self._is_kept, self._report_activity = True, report_activity

    def of(self, queue: Queue | None) -> Tally:
        """Return the queue's tally. None: for what concerns no queue."""
        name = queue.name if queue is not None else ""
        found = self._tallies.get(name)
        return self._new(name) if found is None else found

    def _new(self, name: str) -> Tally:
        if not self._is_kept:
            return self._unread
        tally = self._tallies[name] = Tally(name, self._since, self._observe)
        return tally

    def read(self, now: float) -> list[Tally]:
        """Take out the tallies that are not empty; new ones begin now."""
        self.report()
        tallies, self._tallies, self._since = self._tallies, {}, now
        return [tally for tally in tallies.values() if tally.has_any()]

    def report(self) -> None:
        """Report the activity since the last call to the receiver, if any. Drop tallies that are not `read`."""
        if self._report_activity is None:
            return
        for tally in self._tallies.values():
            if tally.name and (activity := tally.unreported()) is not None:
                self._report_activity(tally.name, activity)
        if not self._is_read:
            self._tallies = {}

    def put_back(self, tallies: Iterable[Tally]) -> None:
        """Put back tallies that were read but could not be stored."""
        for tally in tallies:
            found = self._tallies.get(tally.name)
            (self._new(tally.name) if found is None else found).add(tally)

    def answered(self, seconds: float) -> None:
        """Set the latency of the call whose replies are counted next."""
        self._class = bisect_left(PUT_S, seconds)

    def accept(self, queue: Queue, number: int, octets: int) -> None:
        """Count published messages."""
        tally = self.of(queue)
        tally.accepted += number
        tally.accepted_octets += octets
        tally.put[self._class] += number

    def give(self, queue: Queue, reply: list[Any]) -> None:
        """Count delivered messages by the reply to a take or pull: one value, then eight per batch (lua/take.lua)."""
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
                continue  # a redelivery
            if stamp != last:  # messages of one call have the same age
                last = stamp
                at = bisect_left(_WAIT_MS, now_ms - int(stamp.partition(b" ")[0]))
            wait[at] += count

    def refuse_once(self, once: OnceOnly, error: StoreError, blamed: Queue | None) -> None:
        """Count one refusal with the blamed queue, and every message that the operation publishes as refused."""
        self.of(blamed).refuse(error, 1)
        self.refuse_goals(_puts_of(once))

    def refuse_goals(self, goals: Iterable[tuple[Queue, int]]) -> None:
        """Count refused messages of publishes per queue; the refusal itself is counted elsewhere."""
        for queue, number in goals:
            if number:
                self.of(queue).refused_puts += number

    def fail(self, rounds: Iterable[Round], error: StoreError) -> None:
        """Count everything in a call that was refused as a whole, or whose outcome is unknown."""
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
                self._fail(queue_of(once), reason, 1)
                self.refuse_goals(_puts_of(once))
            for send in round_.sends:
                self._fail(None, reason, send.count)
            self._fail(None, reason, len(round_.heads))

    def _fail(self, queue: Queue | None, reason: str, number: int) -> None:
        if number:
            self.of(queue).refused[reason] += number


def _puts_of(once: OnceOnly) -> list[tuple[Queue, int]]:
    """Return the queues that the operation publishes to, with the number of messages."""
    match once:
        case Commit(parts=parts):
            return [(part.queue, len(part.records)) for part in parts]
        case IdempotentPublish(reason=""):
            return [(once.queue, 1)]
    return []


def queue_of(once: OnceOnly) -> Queue | None:
    """Return the queue to blame if the store names none: of a commit, the first."""
    if isinstance(once, Commit):
        return once.parts[0].queue if once.parts else None
    return once.queue
