"""Handlers: each makes of one operation's reply what its askers wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from services.store import delivery
from services.store.delivery import Delivery
from services.store.errors import (
    BindingsChanged,
    MessageTooLarge,
    QueueUnknown,
    StoreError,
    StoreFault,
    refusal,
    refused_as,
)
from services.store.operations import (
    Bury,
    Commit,
    Counted,
    Done,
    Note,
    Numbered,
    Outcome,
    Placed,
    Publish,
    Reject,
    Return,
    Send,
    Take,
    Watched,
)
from services.store.queues import Queue
from services.store.requests import Push

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


def _fenced(number: int, count: Count) -> StoreError | None:
    if not number:
        return None
    error = refusal("FENCED")
    count(error, number)
    return error


def acked(
    acks: dict[tuple[bytes, bytes], list[int]], waiters: list[tuple[list[Delivery], Done]], count: Count
) -> Handler:
    def handle(reply: Any) -> None:
        gone = failure(reply, count, len(acks))
        keys = list(acks) if gone is None and len(reply) > 1 else []
        fenced = {keys[index] for index in reply[1:]} if keys else set()
        error = gone or _fenced(len(fenced), count)
        for deliveries, done in waiters:
            tell(done, error if gone or any((d.lot, d.entry) in fenced for d in deliveries) else None)

    return handle


def _tell_each(
    items: Sequence[Return | Reject | Note], gone: StoreError | None, indexes: Sequence[int], count: Count
) -> None:
    """indexes: of the messages that were not leased to us, counted over all items."""
    fenced = set() if gone else set(indexes)
    lost = _fenced(len(fenced), count)
    at = 0
    for item in items:
        mine = range(at, at + item.delivery.count)
        at += item.delivery.count
        tell(item.done, gone or (lost if fenced and not fenced.isdisjoint(mine) else None))


def returned(returns: list[Return], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        _tell_each(returns, failure(reply, count, len(returns)), reply[3:], count)

    return handle


def rejected(rejects: list[Reject], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        _tell_each(rejects, failure(reply, count, len(rejects)), reply[2:], count)

    return handle


def noted(notes: list[Note], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        _tell_each(notes, failure(reply, count, len(notes)), reply[2:], count)

    return handle


def buried(bury: Bury, count: Count) -> Handler:
    return lambda reply: tell(bury.done, failure(reply, count, 1))


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


def published(group: list[Publish], sizes: list[int], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        if isinstance(reply, int):
            for publish in group:
                tell(publish.done, [])
            return
        failed = failure(reply, count, sum(sizes))
        if failed is not None:
            for publish in group:
                tell(publish.done, failed)
            return
        verdicts = _verdicts(reply, sizes, count)
        at = 0
        for publish in group:
            mine = verdicts[at : at + len(publish.records)]
            at += len(publish.records)
            tell(publish.done, [(index, why) for index, why in enumerate(mine) if why is not None])

    return handle


def taken(queue: Queue, takes: list[Take], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        gone = failure(reply, count, len(takes))
        if gone is not None:
            for take in takes:
                tell(take.done, gone, False)
            return
        more = reply[0] == 1
        shares = delivery.share(delivery.parse(queue, reply), [take.want for take in takes])
        for take, mine in zip(takes, shares, strict=True):
            tell(take.done, mine, more)

    return handle


def counted(waiters: list[Counted], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        gone = failure(reply, count, len(waiters))
        for done in waiters:
            tell(done, gone or int(reply))

    return handle


def once(operation: Commit | Numbered | Watched | Push, count: Count) -> Handler:
    def handle(reply: Any) -> None:
        failed = failure(reply, count, 1)
        if failed is not None:
            tell(operation.done, failed)
        elif reply[0] == b"DONE":
            tell(operation.done, Outcome.STORED)
        elif reply[0] == b"AGAIN":
            tell(operation.done, Outcome.AGAIN)
        elif reply[0] == b"FAILED":
            error = refusal(reply[1])
            count(error, 1)
            tell(operation.done, error)
        else:
            tell(operation.done, StoreFault(f"a commit was answered with {reply!r}"))

    return handle


def _refused(name: bytes, count: Count) -> StoreError:
    """Why one part was refused; a fault is logged and counted at once."""
    fault = failure(name, count, 1) if name.startswith(b"FAULT") else None
    return fault or refusal(name)


def sent(parts: list[list[Send]], count: Count) -> Handler:
    def handle(reply: Any) -> None:
        whole: StoreError | None = None
        refused: dict[int, StoreError] = {}
        if isinstance(reply, bytes):
            whole = refused_as(reply) or failure(reply, count, sum(s.count for part in parts for s in part))
        elif isinstance(reply, list):
            refused = {reply[i]: _refused(reply[i + 1], count) for i in range(0, len(reply), 2)}
        for index, part in enumerate(parts):
            error = whole or refused.get(index)
            for send in part:
                if error is not None and not isinstance(error, BindingsChanged | StoreFault):
                    count(error, send.count)
                tell(send.done, error)

    return handle


def placed(placed: Placed, count: Count) -> Handler:
    def handle(reply: Any) -> None:
        text = reply.decode()
        fault = failure(reply, count, 1) if text.startswith("FAULT") else None
        tell(placed, fault or text)

    return handle
