"""Check the ordering guarantees that hold when messages are returned.

Messages that one connection put into one queue are queued in the order of its requests; those of a transaction
are queued at its TE. A returned message keeps its place: it precedes messages behind it, but follows those that were
delivered in the meantime. This leaves three checks:

    first     First deliveries are in order. Clients may see another order, because a DNQ with a lost answer may have
              been a message's first delivery. So each message that is first seen late, after one behind it, requires
              its own lost DNQ, sent before the later message was answered.
    drain     With no leases and a single client, the order is strict, also for returned messages.
    abort     With a single consumer, an answered TA has returned its messages: the next message on this connection
              is not behind the first of them. (Not checked while a take of an earlier connection may still be
              in flight in the store.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from protos.tmq import Operation
from tests.faults.checker import Violation
from tests.faults.history import Connection, Request
from tests.faults.plan import REQUEST_TIMEOUT_S
from tests.faults.reading import Delivery, Message, Reading, Transaction

UNDER_WAY_S = 2 * REQUEST_TIMEOUT_S  # how long after sending the store may still process a DNQ


def by_producer(messages: Iterator[Message]) -> list[list[Message]]:
    """Group messages by the connection that put them, each group in queue order."""
    runs: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        runs[message.connection.number].append(message)
    return [sorted(run, key=lambda message: message.place) for run in runs.values()]


# first


def check_first(reading: Reading, queue: str) -> Iterator[Violation]:
    seen = (message for message in reading.of_queue(queue) if message.deliveries)
    late = sorted((limit, message.body, message) for limit, message in _late(by_producer(seen)))
    unseen = sorted(request.sent for request in reading.unseen_takes.get(queue, []))
    for excuses, (limit, _, message) in enumerate(late):
        if excuses >= len(unseen) or unseen[excuses] >= limit:
            others = f"{excuses} others were late too, {len(unseen)} takes unseen"
            text = f"first given out after one behind it; {others}"
            yield Violation("order", text, (message, _overtaker(reading, message, limit)))
            return


def _late(runs: list[list[Message]]) -> Iterator[tuple[float, Message]]:
    """Yield messages first requested after the answer with a message behind them, with the time of that answer."""
    for run in runs:
        earliest = float("inf")
        for message in reversed(run):
            first = _first(message)
            if first.sent > earliest:
                yield earliest, message
            earliest = min(earliest, first.answered)


def _first(message: Message) -> Delivery:
    return min(message.deliveries, key=lambda delivery: delivery.answered)


def _overtaker(reading: Reading, late: Message, answered: float) -> Message:
    return next(
        message
        for message in reading.of_queue(late.queue)
        if message.connection is late.connection
        and message.deliveries
        and _first(message).answered == answered
    )


# drain


def check_drain(reading: Reading, drain: Connection) -> Iterator[Violation]:
    """Check the order of the drain, the only remaining connection, which takes all messages."""
    last: dict[tuple[str, int], Message] = {}
    for request in drain.requests:
        message = reading.messages.get(request.body) if _is_delivery(request) else None
        if message is None:
            continue
        key = (message.queue, message.connection.number)
        before = last.get(key)
        if before is not None and before.place > message.place:
            yield Violation("order", "the drain found it behind one that it stands before", (message, before))
            return
        last[key] = message


def _is_delivery(request: Request) -> bool:
    return request.operation is Operation.DNQ and request.ok


# abort


def aborted(reading: Reading, queue: str) -> Iterator[tuple[Message, Message, float]]:
    """Yield (first message returned by an answered TA, next message on the connection, when that was requested)."""
    for transaction in reading.transactions:
        if transaction.ended < 0 or not transaction.taken or transaction.taken[0].queue != queue:
            continue
        end = transaction.connection.requests[transaction.ended]
        if end.operation is Operation.TA and end.ok:
            first = reading.messages.get(transaction.taken[0].body)
            found = _next_after(reading, transaction, queue)
            if first is not None and found is not None:
                yield first, *found


def _next_after(reading: Reading, transaction: Transaction, queue: str) -> tuple[Message, float] | None:
    for request in transaction.connection.requests[transaction.ended + 1 :]:
        if request.queue == queue and _is_delivery(request) and request.body in reading.messages:
            return reading.messages[request.body], request.sent
    return None


def check_abort(reading: Reading, queue: str) -> Iterator[Violation]:
    unseen = [request.sent for request in reading.unseen_takes.get(queue, [])]
    for first, following, asked in aborted(reading, queue):
        is_behind = following.connection is first.connection and following.place > first.place
        excused = first.is_dead or any(asked - UNDER_WAY_S < sent < asked for sent in unseen)
        if is_behind and not excused:
            yield Violation(
                "order", "given out while one before it had just been put back", (following, first)
            )
