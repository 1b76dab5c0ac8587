"""Handlers: each counts one operation's reply, and makes of it what its askers wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from services.store.model import delivery
from services.store.model.errors import MessageTooLarge, QueueUnknown, StoreError, StoreFault, refusal
from services.store.model.operations import Bury, Note, Publish, Reject, Return, Work
from services.store.model.queues import Queue
from services.store.pipeline.tallies import Tallies, Tally

log = logging.getLogger(__name__)

Handler = Callable[
    [Any], None
]  # looks whom to tell when the answer is there: by then they may have been told
Count = Callable[[StoreError, int], None]


def tell(done: Callable[..., None] | None, *answer: Any) -> None:
    """Hands out one answer. A callback that fails is its asker's bug: the others still get theirs."""
    if done is None:
        return
    try:
        done(*answer)
    except Exception:
        log.exception("an answer could not be handed out", extra={"action": "store_callback_failed"})


def failure(reply: Any, count: Count, number: int) -> StoreError | None:
    """What befell an operation as a whole: its queue is gone, or the function failed over it (lua/work.lua)."""
    if not isinstance(reply, bytes):
        return None
    error: StoreError = QueueUnknown()
    if reply != b"GONE":
        detail = reply.decode("utf-8", "replace")
        log.error("a function of the store failed", extra={"action": "store_fault", "detail": detail[:500]})
        error = StoreFault(detail[:200])
    count(error, number)
    return error


def _fenced(number: int, tally: Tally) -> StoreError | None:
    if not number:
        return None
    error = refusal("FENCED")
    tally.refuse(error, number)
    return error


def acked(work: Work, tallies: Tallies) -> Handler:
    queue, acks, waiters = work.queue, work.acks, work.acked

    def handle(reply: Any) -> None:
        tally = tallies.of(queue)
        if len(reply) == 1:  # of a list: all of them
            tally.acked += reply[0]
            for _, done in waiters:
                tell(done, None)
            return
        gone = failure(reply, tally.refuse, len(acks))
        if gone is None:
            tally.acked += reply[0]
        keys = [] if gone else list(acks)
        fenced = {keys[index] for index in reply[1:]} if keys else set()
        error = gone or _fenced(len(fenced), tally)
        for deliveries, done in waiters:
            tell(done, error if gone or any((d.lot, d.entry) in fenced for d in deliveries) else None)

    return handle


def _tell_each(
    items: Sequence[Return | Reject | Note], gone: StoreError | None, indexes: Sequence[int], tally: Tally
) -> None:
    """indexes: of the messages that were not leased to us, counted over all items."""
    fenced = set() if gone else set(indexes)
    lost = _fenced(len(fenced), tally)
    at = 0
    for item in items:
        mine = range(at, at + item.delivery.count)
        at += item.delivery.count
        tell(item.done, gone or (lost if fenced and not fenced.isdisjoint(mine) else None))


def returned(work: Work, tallies: Tallies) -> Handler:
    returns = work.returns

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        gone = failure(reply, tally.refuse, len(returns))
        if gone is None:
            tally.returned += reply[0]
        _tell_each(returns, gone, reply[3:], tally)

    return handle


def rejected(work: Work, tallies: Tallies) -> Handler:
    rejects = work.rejects

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        gone = failure(reply, tally.refuse, len(rejects))
        if gone is None:
            tally.rejected += reply[0]
        _tell_each(rejects, gone, reply[2:], tally)

    return handle


def noted(work: Work, tallies: Tallies) -> Handler:
    notes = work.notes

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        _tell_each(notes, failure(reply, tally.refuse, len(notes)), reply[2:], tally)

    return handle


def buried(queue: Queue, bury: Bury, tallies: Tallies) -> Handler:
    def handle(reply: Any) -> None:
        tally = tallies.of(queue)
        gone = failure(reply, tally.refuse, 1)
        if gone is None:
            tally.rejected += reply
        tell(bury.done, gone)

    return handle


def _verdicts(reply: Any, sizes: list[int], count: Count) -> list[StoreError | None]:
    """For each message of a run why it was refused, or None; counted.

    Of each entry the first so many were accepted. Where some are LARGE it is said which, and of the others how many.
    """
    error = refusal(reply[1])
    if not isinstance(error, MessageTooLarge):
        accepted = reply[2:] or [0] * len(sizes)
        count(error, sum(sizes) - reply[0])
        return [
            None if index < fit else error
            for size, fit in zip(sizes, accepted, strict=True)
            for index in range(size)
        ]
    verdicts: list[StoreError | None] = []
    full = refusal("FULL")
    for size, (accepted, *large) in zip(sizes, reply[2:], strict=True):
        others = iter([None] * accepted + [full] * (size - accepted - len(large)))
        verdicts += [error if index in large else next(others) for index in range(size)]
    for why in (error, full):
        if number := verdicts.count(why):
            count(why, number)
    return verdicts


def published(
    queue: Queue, group: list[Publish], entries: list[tuple[int, int, bytes]], tallies: Tallies
) -> Handler:
    """entries: messages, octets and records of each, as they were sent."""
    octets = entries[0][1] if len(entries) == 1 else sum([entry[1] for entry in entries])
    sizes = [entry[0] for entry in entries]

    def handle(reply: Any) -> None:
        if isinstance(reply, int):
            tallies.accept(queue, reply, octets)
            for publish in group:
                tell(publish.done, [])
            return
        count = tallies.of(queue).refuse_puts
        failed = failure(reply, count, sum(sizes))
        if failed is not None:
            for publish in group:
                tell(publish.done, failed)
            return
        verdicts = _verdicts(reply, sizes, count)
        _accept_some(queue, group, verdicts, tallies)
        at = 0
        for publish in group:
            mine = verdicts[at : at + len(publish.records)]
            at += len(publish.records)
            tell(publish.done, [(index, why) for index, why in enumerate(mine) if why is not None])

    return handle


def _accept_some(
    queue: Queue, group: list[Publish], verdicts: list[StoreError | None], tallies: Tallies
) -> None:
    """Before anybody is told: whoever asks again is counted behind it."""
    run = (record for publish in group for record in publish.records)
    stored = [len(record) - 4 for record, why in zip(run, verdicts, strict=True) if why is None]
    if stored:
        tallies.accept(queue, len(stored), sum(stored))


def taken(work: Work, tallies: Tallies) -> Handler:
    queue, takes = work.queue, work.takes

    def handle(reply: Any) -> None:
        if isinstance(reply, bytes):
            gone = failure(reply, tallies.of(queue).refuse, len(takes))
            for take in takes:
                tell(take.done, gone, False)
            return
        if len(reply) > 1:
            tallies.give(queue, reply)
        more = reply[0] == 1
        shares = delivery.share(delivery.parse(queue, reply), [take.want for take in takes])
        for take, mine in zip(takes, shares, strict=True):
            tell(take.done, mine, more)

    return handle


def counted(work: Work, tallies: Tallies) -> Handler:
    waiters = work.counts

    def handle(reply: Any) -> None:
        gone = failure(reply, tallies.of(work.queue).refuse, len(waiters))
        for done in waiters:
            tell(done, gone or int(reply))

    return handle
