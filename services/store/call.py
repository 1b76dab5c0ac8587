"""One call of the combined function: what many connections asked for, packed in the order in which it came.

A call is a list of rounds. Within a round each queue is served in the order settle, publish, take, count, and commits
come last; what a connection asks for out of that order goes to a later round, so that each connection sees its own
requests done in sequence (tmq.md 1.2) while everything else is packed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from services.store import delivery, records
from services.store.delivery import Delivery
from services.store.errors import OutcomeUnknown, QueueUnknown, StoreError, StoreFault, refusal
from services.store.keys import DomainKeys
from services.store.queues import Queue

MAX_MESSAGES = 1000  # published or taken by one call (store.md 8)
MAX_BYTES = 1 << 20  # of records in one call; a single larger message goes alone
MAX_QUEUES = 128
TAKE_BYTES = 4 << 20  # of bodies that one take may answer

Refusals = list[tuple[int, StoreError]]  # (index in the run, why)
Published = Callable[[Refusals | StoreError], None]  # [] = all are stored
Taken = Callable[[list[Delivery] | StoreError, bool], None]  # True: there was more than one call may carry
Counted = Callable[[int | StoreError], None]
Done = Callable[[StoreError | None], None]


class Phase(IntEnum):
    """The order within a round."""

    SETTLE = 0
    PUBLISH = 1
    TAKE = 2
    COUNT = 3
    COMMIT = 4


class Source:
    """Whoever wants its own requests done in sequence: a connection."""

    __slots__ = ("call", "phase", "round")

    def __init__(self) -> None:
        self.call: Call | None = None
        self.round = 0
        self.phase = Phase.SETTLE


@dataclass(slots=True)
class Publish:
    records: list[bytes]
    origin: str
    holder: str
    done: Published


@dataclass(slots=True)
class Take:
    want: int
    done: Taken


@dataclass(slots=True)
class Return:
    delivery: Delivery
    failed: bool
    to_end: bool
    error: str
    done: Done | None


@dataclass(slots=True)
class Reject:
    delivery: Delivery
    reason: str
    error: str
    done: Done | None


@dataclass(slots=True)
class Bury:
    record: bytes
    origin: str
    reason: str
    error: str
    done: Done


@dataclass(slots=True)
class Part:
    """One queue's share of a commit."""

    queue: Queue
    deliveries: list[Delivery]
    records: list[bytes]
    origin: str


@dataclass(slots=True)
class Commit:
    identifier: str
    parts: list[Part]
    keep_ms: int
    done: Done


@dataclass(slots=True)
class Work:
    """What one round does to one queue."""

    queue: Queue
    acks: dict[tuple[bytes, bytes], list[int]] = field(
        default_factory=dict
    )  # (lot, entry) -> [size, mask, bytes]
    acked: list[tuple[list[Delivery], Done]] = field(default_factory=list)  # who asked, and for which of them
    returns: list[Return] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    buries: list[Bury] = field(default_factory=list)
    publishes: list[Publish] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    counts: list[Counted] = field(default_factory=list)


@dataclass(slots=True)
class Round:
    works: dict[str, Work] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)


Handler = Callable[[Any], None]
Count = Callable[[StoreError, int], None]


class Call:
    """Gathers operations, becomes one FCALL, and hands its reply out again."""

    def __init__(self, keys: DomainKeys, count: Count) -> None:
        self.keys = keys
        self.count = count  # told of every refusal in the answers
        self.rounds: list[Round] = []
        self.messages = 0
        self.wanted = 0
        self.settles = 0  # messages to return or reject, and stretches of entries to acknowledge
        self.bytes = 0
        self.queues: dict[str, tuple[int, Queue]] = {}
        self.replicas = 0
        self.born = 0.0  # loop time of the first operation
        self.sequence = 0
        self.command: tuple[Any, ...] = ()
        self.handlers: list[Handler] = []
        self.uncertain = False  # it was sent at least once without an answer
        self.was_uncertain = False  # the same, before the last attempt
        self.abandoned = False  # its askers have been told that the outcome is unknown

    def has_room(self, messages: int, size: int, wanted: int, queues: int = 1, settles: int = 0) -> bool:
        return not self.rounds or (
            self.messages + messages <= MAX_MESSAGES
            and self.bytes + size <= MAX_BYTES
            and self.wanted + wanted <= MAX_MESSAGES
            and self.settles + settles <= MAX_MESSAGES
            and len(self.queues) + queues <= MAX_QUEUES
        )

    def place(self, source: Source, phase: Phase) -> Round:
        """The first round in which this connection's next request keeps its sequence."""
        if source.call is not self:
            source.call, source.round = self, 0
        elif phase < source.phase:
            source.round += 1
        source.phase = phase
        rounds = self.rounds
        while len(rounds) <= source.round:
            rounds.append(Round())
        return rounds[source.round]

    def next_round(self, source: Source) -> None:
        """What this connection asks for next comes after all that it asked for up to now."""
        source.round += 1
        source.phase = Phase.SETTLE

    def work(self, source: Source, queue: Queue, phase: Phase) -> Work:
        works = self.place(source, phase).works
        work = works.get(queue.qid)
        if work is None:
            work = works[queue.qid] = Work(queue)
            self.touch(queue)
        return work

    def touch(self, queue: Queue) -> int:
        found = self.queues.get(queue.qid)
        if found is None:
            found = self.queues[queue.qid] = (len(self.queues), queue)
            self.replicas = max(self.replicas, queue.replicas)
        return found[0]

    # encoding

    def encode(self, epoch: str, session: str, sequence: int, deadline_ms: int) -> None:
        """Freezes the call into its command; what comes later goes into another."""
        self.sequence = sequence
        args: list[Any] = []
        transactions: list[str] = []
        for round_ in self.rounds:
            for work in round_.works.values():
                self._encode_work(work, args)
            for commit in round_.commits:
                self._encode_commit(commit, args, transactions)
        keys = [self.keys.epoch, self.keys.sessions, self.keys.lane(session), self.keys.lots(session)]
        for _, queue in self.queues.values():
            keys.extend(queue.keys)
        keys.extend(transactions)
        head = (epoch, session, sequence, deadline_ms, self.keys.wake_channel, len(self.queues))
        self.command = ("FCALL", "ps1_work", len(keys), *keys, *head, *args)

    def _encode_work(self, work: Work, args: list[Any]) -> None:
        index = self.queues[work.queue.qid][0]
        if work.acks:
            args += ("A", index, len(work.acks))
            for (lot, entry), (size, mask, count) in work.acks.items():
                args += (lot, entry, size, mask, count)
            self.handlers.append(_acked(work.acks, work.acked, self.count))
        if work.returns:
            _encode_returns(index, work.returns, args)
            self.handlers.append(_returned(work.returns, self.count))
        if work.rejects:
            _encode_rejects(index, work.rejects, args)
            self.handlers.append(_rejected(work.rejects, self.count))
        for bury in work.buries:
            args += ("B", index, bury.origin, 1, bury.reason, bury.error, bury.record)
            self.handlers.append(_plain(bury.done))
        if work.publishes:
            self._encode_publishes(index, work.publishes, args)
        if work.takes:
            args += ("T", index, sum(take.want for take in work.takes), TAKE_BYTES)
            self.handlers.append(_taken(work.queue, work.takes))
        if work.counts:
            args += ("C", index)
            self.handlers.append(_counted(work.counts))

    def _encode_publishes(self, index: int, publishes: list[Publish], args: list[Any]) -> None:
        """Runs of the same origin share entries, whichever connections they came from."""
        start = 0
        while start < len(publishes):
            first = publishes[start]
            end = start + 1
            while (
                end < len(publishes)
                and publishes[end].origin == first.origin
                and publishes[end].holder == first.holder
            ):
                end += 1
            group = publishes[start:end]
            run = first.records if len(group) == 1 else [record for p in group for record in p.records]
            entries = records.pack(run)
            args += ("P", index, first.origin, first.holder, len(entries))
            for entry in entries:
                args += entry
            self.handlers.append(_published(group, [entry[0] for entry in entries], self.count))
            start = end

    def _encode_commit(self, commit: Commit, args: list[Any], transactions: list[str]) -> None:
        transactions.append(self.keys.transaction(commit.identifier))
        key = 4 + 8 * len(self.queues) + len(transactions)
        args += ("X", key, commit.keep_ms, len(commit.parts))
        for part in commit.parts:
            merged = merge(part.deliveries)
            entries = records.pack(part.records) if part.records else []
            args += (self.queues[part.queue.qid][0], len(merged), part.origin)
            for group in merged:
                args += group
            args.append(len(entries))
            for packed in entries:
                args += packed
        self.handlers.append(_committed(commit, self.count))

    # the answer

    def finish(self, replies: list[Any]) -> None:
        for handler, reply in zip(self.handlers, replies, strict=True):
            handler(reply)

    def fail(self, error: StoreError) -> None:
        """Everybody who asked is told the same."""
        for round_ in self.rounds:
            for work in round_.works.values():
                waiting: list[Return | Reject | Bury] = [*work.returns, *work.rejects, *work.buries]
                for done in (*(done for _, done in work.acked), *(item.done for item in waiting)):
                    if done is not None:
                        done(error)
                for publish in work.publishes:
                    publish.done(error)
                for take in work.takes:
                    take.done(error, False)
                for counted in work.counts:
                    counted(error)
            for commit in round_.commits:
                commit.done(error)

    def abandon(self, give_back: Callable[[list[Delivery]], None]) -> None:
        """Tells everybody that the outcome is unknown. What still becomes of it is looked at once it is known."""
        self.abandoned = True
        self.fail(OutcomeUnknown())

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if isinstance(got, list) and got:
                give_back(got)

        for round_ in self.rounds:
            for work in round_.works.values():
                work.acked.clear()
                settled: list[Return | Reject] = [*work.returns, *work.rejects]
                for item in settled:
                    item.done = None
                for bury in work.buries:
                    bury.done = _ignore
                for publish in work.publishes:
                    publish.done = _ignore
                for take in work.takes:
                    take.done = taken
                work.counts.clear()
            for commit in round_.commits:
                commit.done = _give_back_unless_done(commit, give_back)

    def move_settles(self, later: Call) -> None:
        """Settles that were certainly not carried out go into a later call: nobody else would ever do them."""
        source = Source()
        for round_ in self.rounds:
            for work in round_.works.values():
                if not (work.acks or work.returns or work.rejects):
                    continue
                target = later.work(source, work.queue, Phase.SETTLE)
                for key, (size, mask, count) in work.acks.items():
                    found = target.acks.setdefault(key, [size, 0, 0])
                    if not found[1] & mask:
                        found[1] |= mask
                        found[2] += count
                target.acked += work.acked
                target.returns += work.returns
                target.rejects += work.rejects
                work.acks, work.acked, work.returns, work.rejects = {}, [], [], []

    def only_settles(self) -> bool:
        return not any(
            round_.commits
            or any(w.publishes or w.takes or w.counts or w.buries for w in round_.works.values())
            for round_ in self.rounds
        )


def _give_back_unless_done(commit: Commit, give_back: Callable[[list[Delivery]], None]) -> Done:
    def done(error: StoreError | None) -> None:
        leased = [d for part in commit.parts for d in part.deliveries]
        if error is not None and leased:
            give_back(leased)

    return done


def _ignore(_: Any) -> None:
    return None


def merge(deliveries: list[Delivery]) -> list[tuple[bytes, bytes, int, int, int]]:
    """Acknowledgements: (lot, entry, messages in the entry, mask, octets of bodies). What is there twice stays so."""
    acks: dict[tuple[bytes, bytes], list[int]] = {}
    twice = [d for d in deliveries if not add_ack(acks, d)]
    merged = [(lot, entry, size, mask, count) for (lot, entry), (size, mask, count) in acks.items()]
    return merged + [(d.lot, d.entry, d.size, d.mask, d.body_bytes) for d in twice]


def add_ack(acks: dict[tuple[bytes, bytes], list[int]], d: Delivery) -> bool:
    """False if some of these messages are among them already: nothing was added."""
    found = acks.get((d.lot, d.entry))
    if found is None:
        acks[d.lot, d.entry] = [d.size, d.mask, d.body_bytes]
    elif found[1] & d.mask:
        return False
    else:
        found[1] |= d.mask
        found[2] += d.body_bytes
    return True


def together(done: Done | None, number: int) -> Done | None:
    """One answer for several operations: called `number` times, it tells the first error, or None."""
    if done is None or number == 1:
        return done
    errors: list[StoreError | None] = []

    def one(error: StoreError | None) -> None:
        errors.append(error)
        if len(errors) == number:
            done(next((e for e in errors if e is not None), None))

    return one


def _encode_returns(index: int, returns: list[Return], args: list[Any]) -> None:
    args += ("R", index, sum(r.delivery.count for r in returns))
    for r in returns:
        d = r.delivery
        for position in range(d.start, d.start + d.count):
            args += (d.lot, d.entry, position, "end" if r.to_end else "front", int(r.failed), r.error)


def _encode_rejects(index: int, rejects: list[Reject], args: list[Any]) -> None:
    args += ("J", index, sum(r.delivery.count for r in rejects))
    for r in rejects:
        d = r.delivery
        for position in range(d.start, d.start + d.count):
            args += (d.lot, d.entry, position, r.reason, r.error)


# Handlers: each makes of one operation's reply what its askers wait for


def _gone(reply: Any) -> QueueUnknown | None:
    return QueueUnknown() if reply == b"GONE" else None


def _fenced(number: int, count: Count) -> StoreError | None:
    if not number:
        return None
    error = refusal("FENCED")
    count(error, number)
    return error


def _acked(
    acks: dict[tuple[bytes, bytes], list[int]], waiters: list[tuple[list[Delivery], Done]], count: Count
) -> Handler:
    def handle(reply: Any) -> None:
        gone = _gone(reply)
        keys = list(acks) if gone is None and len(reply) > 1 else []
        fenced = {keys[index] for index in reply[1:]} if keys else set()
        error = gone or _fenced(len(fenced), count)
        for deliveries, done in waiters:
            done(error if gone or any((d.lot, d.entry) in fenced for d in deliveries) else None)

    return handle


def _tell_each(
    items: Sequence[Return | Reject], gone: StoreError | None, indexes: Sequence[int], count: Count
) -> None:
    """indexes: of the messages that were not leased to us, counted over all items."""
    fenced = set() if gone else set(indexes)
    lost = _fenced(len(fenced), count)
    at = 0
    for item in items:
        mine = range(at, at + item.delivery.count)
        at += item.delivery.count
        if item.done is not None:
            item.done(gone or (lost if fenced and not fenced.isdisjoint(mine) else None))


def _returned(returns: list[Return], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        _tell_each(returns, _gone(reply), reply[3:], count)

    return handle


def _rejected(rejects: list[Reject], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        _tell_each(rejects, _gone(reply), reply[2:], count)

    return handle


def _plain(done: Done) -> Handler:
    return lambda reply: done(_gone(reply))


def _published(group: list[Publish], sizes: list[int], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        if isinstance(reply, int):
            for publish in group:
                publish.done([])
            return
        error = refusal(reply[1])
        accepted = reply[2:] or [0] * len(sizes)
        count(error, sum(sizes) - reply[0])
        fits = [index < fit for size, fit in zip(sizes, accepted, strict=True) for index in range(size)]
        at = 0
        for publish in group:
            mine = fits[at : at + len(publish.records)]
            at += len(publish.records)
            publish.done([(index, error) for index, ok in enumerate(mine) if not ok])

    return handle


def _taken(queue: Queue, takes: list[Take]) -> Handler:
    def handle(reply: Any) -> None:
        gone = _gone(reply)
        if gone is not None:
            for take in takes:
                take.done(gone, False)
            return
        more = reply[0] == 1
        shares = delivery.share(delivery.parse(queue, reply), [take.want for take in takes])
        for take, mine in zip(takes, shares, strict=True):
            take.done(mine, more)

    return handle


def _counted(waiters: list[Counted]) -> Handler:
    def handle(reply: Any) -> None:
        for done in waiters:
            done(_gone(reply) or int(reply))

    return handle


def _committed(commit: Commit, count: Count) -> Handler:
    def handle(reply: Any) -> None:
        if reply[0] == b"DONE":
            commit.done(None)
        elif reply[0] == b"FAILED":
            error = refusal(reply[1])
            count(error, 1)
            commit.done(error)
        else:
            commit.done(StoreFault(f"a commit was answered with {reply!r}"))

    return handle
