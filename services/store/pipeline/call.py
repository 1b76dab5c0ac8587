"""A batch of operations of many connections that is sent to the store as one function call.

A call is a list of rounds. Within a round each queue is served in the order settle, publish, take, count; commits come
last. An operation that a connection requests out of that order goes to a later round. So each connection's requests
run in sequence (tmq.md 1.2) while everything else is batched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from services.store.model.client import INTERNAL_CLIENT
from services.store.model.delivery import Delivery
from services.store.model.errors import BehindRefused, OutcomeUnknown, StoreError, StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.model.operations import (
    MAX_BYTES,
    MAX_MESSAGES,
    MAX_QUEUES,
    Bury,
    Commit,
    Note,
    Phase,
    Publish,
    Reject,
    Return,
    Round,
    Source,
    Work,
)
from services.store.model.queues import Queue
from services.store.model.requests import Nothing, Once, Outcome, Pull, Pulled, Pulls
from services.store.pipeline.encoding import Encoder, Head
from services.store.pipeline.outcomes import Handler, notify
from services.store.pipeline.tallies import Tallies


class Call:
    """Operations that are sent as one FCALL, and the dispatch of its reply."""

    def __init__(self, keys: DomainKeys, tallies: Tallies) -> None:
        self.keys = keys
        self.tallies = tallies
        self.rounds: list[Round] = []
        self.messages = 0
        self.wanted = 0
        self.settles = 0  # messages to return or reject, and ranges of entries to acknowledge
        self.bytes = 0
        self.queues: dict[str, tuple[int, Queue]] = {}
        self.replicas = 0
        self.created_at = 0.0  # when its first operation was added (monotonic)
        self.sequence = 0
        self.command: tuple[Any, ...] = ()
        self.handlers: list[Handler] = []
        self.trouble: StoreUnavailable | None = None  # why an earlier attempt failed
        self.uncertain = False  # it was sent at least once and not answered
        self.was_uncertain = False  # the same, before the last attempt
        self.packs_traced = False  # it may publish traced messages
        self.in_order = False  # it has ordered publishes: see skip_stopped
        self.ordered: list[tuple[int, Source]] = []  # reply index and source of each ordered publish
        self.skipped: list[tuple[Queue, Publish]] = []
        self.abandoned = False  # its callers were answered OutcomeUnknown
        self.has_moved = False  # it contains settles of a call that failed locally

    def has_room(self, messages: int, size: int, wanted: int, queues: int, settles: int) -> bool:
        """Return whether an operation of this size fits. An empty call takes any."""
        return not self.rounds or (
            self.messages + messages <= MAX_MESSAGES
            and self.bytes + size <= MAX_BYTES
            and self.wanted + wanted <= MAX_MESSAGES
            and self.settles + settles <= MAX_MESSAGES
            and len(self.queues) + queues <= MAX_QUEUES
        )

    def place(self, source: Source, phase: Phase) -> Round:
        """Return the first round in which the source's next operation stays in sequence."""
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
        """Place the source's next operation after all of its earlier ones."""
        source.round += 1
        source.phase = Phase.SETTLE

    def keep_in_order(self, source: Source, queue: Queue) -> None:
        """Start a new round when an ordered source changes queues, as a round serves queue after queue."""
        self.in_order = True
        if source.call is self and source.queue is not queue:
            self.next_round(source)
        source.queue = queue

    def work(self, source: Source, queue: Queue, phase: Phase) -> Work:
        """Return the work on the queue to which the source's next operation is added."""
        works = self.place(source, phase).works
        work = works.get(queue.qid)
        if work is None:
            work = works[queue.qid] = Work(queue)
            self.touch(queue)
        return work

    def touch(self, queue: Queue) -> None:
        """Register a queue that the call uses."""
        if queue.qid not in self.queues:
            self.queues[queue.qid] = (len(self.queues), queue)
            self.replicas = max(self.replicas, queue.replicas)

    def skip_stopped(self) -> None:
        """Remove ordered publishes whose source was refused something meanwhile. Called before the first send.

        They are answered with the call's reply, so that earlier operations are answered first.
        """
        for round_ in self.rounds:
            for work in round_.works.values():
                kept: list[Publish] = []
                for publish in work.publishes:
                    if publish.in_order is None or not publish.in_order.stopped:
                        kept.append(publish)
                    else:
                        self.skipped.append((work.queue, publish))
                work.publishes = kept

    def stop_refused(self, replies: list[Any]) -> None:
        """Stop the sources of refused ordered publishes. Called before the next call is sent."""
        for index, source in self.ordered:
            if not isinstance(replies[index], int):
                source.stopped = True

    def _refuse_skipped(self) -> None:
        skipped, self.skipped = self.skipped, []
        for queue, publish in skipped:
            self.tallies.of(queue).refuse_puts(BehindRefused(), len(publish.records))
            notify(publish.done, BehindRefused())

    def encode(self, epoch: str, session: str, sequence: int, deadline_ms: int) -> None:
        """Encode the call's command. Nothing may be added afterwards."""
        self.sequence = sequence
        encoder = Encoder(self.keys, self.queues, self.tallies, packs_traced=self.packs_traced)
        self.command = encoder.encode(self.rounds, Head(epoch, session, sequence, deadline_ms))
        self.handlers, self.ordered = encoder.handlers, encoder.ordered

    def finish(self, replies: list[Any]) -> None:
        """Pass each reply to its handler, which answers the callers."""
        self.tallies.answered(time.monotonic() - self.created_at)
        self._refuse_skipped()
        for handler, reply in zip(self.handlers, replies, strict=True):
            handler(reply)

    def fail(self, error: StoreError) -> None:
        """Answer every caller with the same error."""
        self._refuse_skipped()
        if not self.abandoned:
            self.tallies.fail(self.rounds, error)
        for round_ in self.rounds:
            for work in round_.works.values():
                waiting: list[Return | Reject | Bury | Note] = [*work.returns, *work.rejects]
                waiting += [*work.buries, *work.notes]
                for done in (*(done for _, done in work.acked), *(item.done for item in waiting)):
                    notify(done, error)
                for publish in work.publishes:
                    notify(publish.done, error)
                for take in work.takes:
                    notify(take.done, error, False)
                for counted in work.counts:
                    notify(counted, error)
            for commit in round_.commits:
                notify(commit.done, error)
            for send in round_.sends:
                notify(send.done, error)
            for placed in round_.heads:
                notify(placed, error)

    def abandon(self, give_back: Callable[[list[Delivery]], None]) -> None:
        """Answer every caller OutcomeUnknown. Should a reply still come, messages leased by it are given back."""
        self.tallies.fail(self.rounds, OutcomeUnknown())
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
                for note in work.notes:
                    note.done = _ignore
                for publish in work.publishes:
                    publish.done = _ignore
                for take in work.takes:
                    take.done = taken
                work.counts.clear()
            for commit in round_.commits:
                if isinstance(commit, Commit):
                    commit.done = _give_back_unless_done(commit, give_back)
                elif isinstance(commit, Pull):
                    commit.done = _give_back_pulled(give_back)
                else:
                    commit.done = _ignore
            for send in round_.sends:
                send.done = _ignore
            round_.heads = [_ignore] * len(round_.heads)

    def move_settles(self, later: Call) -> None:
        """Move the settles of a call that was certainly not executed to a later call."""
        source = Source(INTERNAL_CLIENT)
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
        """Return whether nothing but settles is in it."""
        return not any(
            round_.commits
            or round_.sends
            or round_.heads
            or any(w.publishes or w.takes or w.counts or w.buries or w.notes for w in round_.works.values())
            for round_ in self.rounds
        )


def _give_back_unless_done(commit: Commit, give_back: Callable[[list[Delivery]], None]) -> Once:
    def done(outcome: Outcome | StoreError) -> None:
        leased = [d for part in commit.parts for d in part.deliveries]
        if isinstance(outcome, StoreError) and leased:
            give_back(leased)

    return done


def _give_back_pulled(give_back: Callable[[list[Delivery]], None]) -> Pulls:
    def done(answer: Pulled | Nothing | StoreError) -> None:
        if isinstance(answer, Pulled) and not answer.again:
            give_back([answer.delivery])

    return done


def _ignore(_: Any) -> None:
    return None
