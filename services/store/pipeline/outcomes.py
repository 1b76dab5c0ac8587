"""Reply handlers of message operations: each counts the outcome of one operation and answers its callers."""

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

# Takes one reply. Reads the callbacks only then: `Call.abandon` may have answered them and set others.
Handler = Callable[[Any], None]
Count = Callable[[StoreError, int], None]


def notify(done: Callable[..., None] | None, *answer: Any) -> None:
    """Call `done`, if any, and log its failure, so that other callers still get their answers."""
    if done is None:
        return
    try:
        done(*answer)
    except Exception:
        log.exception("internal error in a reply handler", extra={"action": "store_callback_failed"})


def failure(reply: Any, count: Count, number: int) -> StoreError | None:
    """Return the error of an operation as a whole, counted `number` times: the queue is deleted, or it failed.

    None if the reply is not text (lua/work.lua).
    """
    if not isinstance(reply, bytes):
        return None
    error: StoreError = QueueUnknown()
    if reply != b"GONE":
        detail = reply.decode("utf-8", "replace")
        log.error("a store function failed", extra={"action": "store_fault", "detail": detail[:500]})
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
    """Return the handler of acknowledgements; the reply is how many, then the indexes of fenced entries."""
    queue, acks, waiters = work.queue, work.acks, work.acked

    def handle(reply: Any) -> None:
        tally = tallies.of(queue)
        if len(reply) == 1:  # a list: all were acknowledged
            tally.acked += reply[0]
            for _, done in waiters:
                notify(done, None)
            return
        failed = failure(reply, tally.refuse, len(acks))
        if failed is None:
            tally.acked += reply[0]
        keys = [] if failed else list(acks)
        fenced = {keys[index] for index in reply[1:]} if keys else set()
        error = failed or _fenced(len(fenced), tally)
        for deliveries, done in waiters:
            notify(done, error if failed or any((d.lot, d.entry) in fenced for d in deliveries) else None)

    return handle


def _notify_each(
    items: Sequence[Return | Reject | Note], failed: StoreError | None, indexes: Sequence[int], tally: Tally
) -> None:
    """Answer each item. indexes: of the messages that were not leased to this process, over all items."""
    fenced = set() if failed else set(indexes)
    lost = _fenced(len(fenced), tally)
    at = 0
    for item in items:
        mine = range(at, at + item.delivery.count)
        at += item.delivery.count
        notify(item.done, failed or (lost if fenced and not fenced.isdisjoint(mine) else None))


def returned(work: Work, tallies: Tallies) -> Handler:
    """Return the handler of returns."""
    returns = work.returns

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        failed = failure(reply, tally.refuse, len(returns))
        if failed is None:
            tally.returned += reply[0]
        _notify_each(returns, failed, reply[3:], tally)

    return handle


def rejected(work: Work, tallies: Tallies) -> Handler:
    """Return the handler of rejections."""
    rejects = work.rejects

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        failed = failure(reply, tally.refuse, len(rejects))
        if failed is None:
            tally.rejected += reply[0]
        _notify_each(rejects, failed, reply[2:], tally)

    return handle


def noted(work: Work, tallies: Tallies) -> Handler:
    """Return the handler of notes."""
    notes = work.notes

    def handle(reply: Any) -> None:
        tally = tallies.of(work.queue)
        _notify_each(notes, failure(reply, tally.refuse, len(notes)), reply[2:], tally)

    return handle


def buried(queue: Queue, bury: Bury, tallies: Tallies) -> Handler:
    """Return the handler of one message that becomes a dead letter."""

    def handle(reply: Any) -> None:
        tally = tallies.of(queue)
        failed = failure(reply, tally.refuse, 1)
        if failed is None:
            tally.rejected += reply
        notify(bury.done, failed)

    return handle


def _verdicts(reply: Any, sizes: list[int], count: Count) -> list[StoreError | None]:
    """Return for each message of a run why it was refused, or None; count the refusals.

    The reply has per entry how many of its first messages were accepted and, if some are too large, their indexes.
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
    """Return the handler of publishes that share entries (number of messages, octets, records)."""
    octets = entries[0][1] if len(entries) == 1 else sum([entry[1] for entry in entries])
    sizes = [entry[0] for entry in entries]

    def handle(reply: Any) -> None:
        if isinstance(reply, int):
            tallies.accept(queue, reply, octets)
            for publish in group:
                notify(publish.done, [])
            return
        count = tallies.of(queue).refuse_puts
        failed = failure(reply, count, sum(sizes))
        if failed is not None:
            for publish in group:
                notify(publish.done, failed)
            return
        verdicts = _verdicts(reply, sizes, count)
        _accept_some(queue, group, verdicts, tallies)
        at = 0
        for publish in group:
            mine = verdicts[at : at + len(publish.records)]
            at += len(publish.records)
            notify(publish.done, [(index, why) for index, why in enumerate(mine) if why is not None])

    return handle


def _accept_some(
    queue: Queue, group: list[Publish], verdicts: list[StoreError | None], tallies: Tallies
) -> None:
    """Count what was stored. Called before the callers are answered, whose repeats are counted after it."""
    run = (record for publish in group for record in publish.records)
    stored = [len(record) - 4 for record, why in zip(run, verdicts, strict=True) if why is None]
    if stored:
        tallies.accept(queue, len(stored), sum(stored))


def taken(work: Work, tallies: Tallies) -> Handler:
    """Return the handler of takes: it shares out the leased messages."""
    queue, takes = work.queue, work.takes

    def handle(reply: Any) -> None:
        if isinstance(reply, bytes):
            failed = failure(reply, tallies.of(queue).refuse, len(takes))
            for take in takes:
                notify(take.done, failed, False)
            return
        if len(reply) > 1:
            tallies.give(queue, reply)
        more = reply[0] == 1
        shares = delivery.share(delivery.parse(queue, reply), [take.want for take in takes])
        for take, mine in zip(takes, shares, strict=True):
            notify(take.done, mine, more)

    return handle


def counted(work: Work, tallies: Tallies) -> Handler:
    """Return the handler of counts of ready messages."""
    waiters = work.counts

    def handle(reply: Any) -> None:
        failed = failure(reply, tallies.of(work.queue).refuse, len(waiters))
        for done in waiters:
            notify(done, failed or int(reply))

    return handle
