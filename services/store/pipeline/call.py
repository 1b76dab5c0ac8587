"""One call of the combined function: what many connections asked for, packed in the order in which it came.

A call is a list of rounds. Within a round each queue is served in the order settle, publish, take, count, and commits
come last; what a connection asks for out of that order goes to a later round, so that each connection sees its own
requests done in sequence (tmq.md 1.2) while everything else is packed together.
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
from services.store.pipeline.outcomes import Handler, tell
from services.store.pipeline.tallies import Tallies


class Call:
    """Gathers operations, becomes one FCALL, and hands its reply out again."""

    def __init__(self, keys: DomainKeys, tallies: Tallies) -> None:
        self.keys = keys
        self.tallies = tallies  # told of all that the answers say
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
        self.trouble: StoreUnavailable | None = None  # why an earlier attempt failed
        self.uncertain = False  # it was sent at least once without an answer
        self.was_uncertain = False  # the same, before the last attempt
        self.packs_traced = False  # some of its messages are traced, perhaps
        self.in_order = False  # some of it is: see leave_out_stopped
        self.ordered: list[
            tuple[int, Source]
        ] = []  # which replies are of what was asked in order, and by whom
        self.left_out: list[tuple[Queue, Publish]] = []
        self.abandoned = False  # its askers have been told that the outcome is unknown
        self.has_moved = False  # settles of a call that could not be made are in it

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

    def keep_in_order(self, source: Source, queue: Queue) -> None:
        """A round serves each queue as a whole: what is for another one than before goes to the next."""
        self.in_order = True
        if source.call is self and source.queue is not queue:
            self.next_round(source)
        source.queue = queue

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

    def leave_out_stopped(self) -> None:
        """Before it is first sent: what its source wanted in order, behind something that was refused meanwhile."""
        for round_ in self.rounds:
            for work in round_.works.values():
                kept: list[Publish] = []
                for publish in work.publishes:
                    if publish.in_order is None or not publish.in_order.stopped:
                        kept.append(publish)
                    else:
                        self.left_out.append(
                            (work.queue, publish)
                        )  # told later: those before it are told first
                work.publishes = kept

    def stop_refused(self, replies: list[Any]) -> None:
        """Before the next call goes out, which is before anybody is told."""
        for index, source in self.ordered:
            if not isinstance(replies[index], int):
                source.stopped = True

    def _tell_left_out(self) -> None:
        left_out, self.left_out = self.left_out, []
        for queue, publish in left_out:
            self.tallies.of(queue).refuse_puts(BehindRefused(), len(publish.records))
            tell(publish.done, BehindRefused())

    def encode(self, epoch: str, session: str, sequence: int, deadline_ms: int) -> None:
        """Freezes the call into its command; what comes later goes into another."""
        self.sequence = sequence
        encoder = Encoder(self.keys, self.queues, self.tallies, packs_traced=self.packs_traced)
        self.command = encoder.encode(self.rounds, Head(epoch, session, sequence, deadline_ms))
        self.handlers, self.ordered = encoder.handlers, encoder.ordered

    # the answer

    def finish(self, replies: list[Any]) -> None:
        self.tallies.answered(time.monotonic() - self.born)
        self._tell_left_out()
        for handler, reply in zip(self.handlers, replies, strict=True):
            handler(reply)

    def fail(self, error: StoreError) -> None:
        """Everybody who asked is told the same."""
        self._tell_left_out()
        if not self.abandoned:
            self.tallies.fail(self.rounds, error)
        for round_ in self.rounds:
            for work in round_.works.values():
                waiting: list[Return | Reject | Bury | Note] = [*work.returns, *work.rejects]
                waiting += [*work.buries, *work.notes]
                for done in (*(done for _, done in work.acked), *(item.done for item in waiting)):
                    tell(done, error)
                for publish in work.publishes:
                    tell(publish.done, error)
                for take in work.takes:
                    tell(take.done, error, False)
                for counted in work.counts:
                    tell(counted, error)
            for commit in round_.commits:
                tell(commit.done, error)
            for send in round_.sends:
                tell(send.done, error)
            for placed in round_.heads:
                tell(placed, error)

    def abandon(self, give_back: Callable[[list[Delivery]], None]) -> None:
        """Tells everybody that the outcome is unknown. What still becomes of it is looked at once it is known."""
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
        """Settles that were certainly not carried out go into a later call: nobody else would ever do them."""
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
    def done(told: Pulled | Nothing | StoreError) -> None:
        if isinstance(told, Pulled) and not told.again:
            give_back([told.delivery])

    return done


def _ignore(_: Any) -> None:
    return None
