"""Invariants that hold after a run with any kills at any time (tmq.md 5 to 7, docs/guarantees.md).

invented   a delivered message was put by a client; its ENQ was not answered as failed, and its transaction was
           neither aborted nor failed
lost       a message answered as stored was settled, or is a dead letter with a reason; a returned message was
           redelivered
repeated   a settled message is never delivered again: settled by TE = 0; or, outside transactions, by a later
           request of the same connection that the store has answered, or by a FIN to an edge that kept running
partial    a transaction without an answer took effect as a whole, or not at all
order      see order.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.reading import Delivery, End, Message, Outcome, Reading, Transaction


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    text: str
    messages: tuple[Message, ...] = ()  # the report prints their histories


def check(reading: Reading) -> list[Violation]:
    found = [*_invented(reading)]
    for message in reading.messages.values():
        found += _check_message(message)
    for transaction in reading.transactions:
        found += _partial(transaction)
    return found


def _invented(reading: Reading) -> Iterator[Violation]:
    for delivery in reading.invented:
        known = reading.messages.get(delivery.body)
        text = f"{delivery.queue} gave out {delivery.body[:40]!r}, which was never put there"
        yield Violation("invented", text, (known,) if known is not None else ())
    for queue, body in reading.invented_dead:
        yield Violation(
            "invented", f"the dead letters of {queue} hold {body[:40]!r}, which was never put there"
        )


def _check_message(message: Message) -> Iterator[Violation]:
    if message.was_seen and message.outcome is Outcome.NOT_DONE:
        yield Violation("invented", "it was answered as failed, or aborted, but it is there", (message,))
    if message.is_stored:
        yield from _lost(message)
        yield from _repeated(message)


def _lost(message: Message) -> Iterator[Violation]:
    if message.is_dead:
        return
    if not message.deliveries:
        yield Violation("lost", "it was answered as stored, but never seen", (message,))
    elif all(delivery.end is End.RETURNED for delivery in _possibly_last(message)):
        yield Violation("lost", "it went back to its queue, but never came again", (message,))


def _possibly_last(message: Message) -> list[Delivery]:
    return [d for d in message.deliveries if not any(other.is_after(d) for other in message.deliveries)]


def _repeated(message: Message) -> Iterator[Violation]:
    settled = [delivery for delivery in message.deliveries if delivery.end is End.SETTLED]
    if len(settled) > 1:
        yield Violation("repeated", f"it was settled {len(settled)} times", (message,))
    elif settled and message.is_dead:
        yield Violation("repeated", "it was settled, and is dead too", (message,))
    elif settled and any(other.is_after(settled[0]) for other in message.deliveries):
        yield Violation("repeated", "it came again after it had been settled", (message,))


def _partial(transaction: Transaction) -> Iterator[Violation]:
    """Check unanswered transactions; `lost`, `invented` and `repeated` cover the answered ones."""
    if not transaction.judged or transaction.outcome is not Outcome.DONE:
        return
    missing = tuple(message for message in transaction.puts if not message.was_seen)
    if missing and len(missing) < len(transaction.puts):
        text = f"{len(missing)} of the {len(transaction.puts)} messages of one transaction are missing"
        yield Violation("partial", text, missing)


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """A queue's counters in the store after the drain and before the redrive of dead letters."""

    added: int
    acked: int
    dead: int
    ready: int
    in_flight: int


def check_counts(reading: Reading, counts: dict[str, QueueCounts]) -> Iterator[Violation]:
    """Check the store's counters against the clients' view; after the drain all stored messages have been seen."""
    for queue, value in counts.items():
        seen = [message for message in reading.of_queue(queue) if message.was_seen]
        dead = sum(message.is_dead for message in seen)
        expected = QueueCounts(len(seen), len(seen) - dead, dead, 0, 0)
        if value != expected:
            yield Violation("counters", f"{queue}: the store says {value}, the clients saw {expected}")


def outcomes(reading: Reading) -> Counter[str]:
    """Count messages and transactions by outcome, to show how much a run exercised."""
    found: Counter[str] = Counter()
    for message in reading.messages.values():
        own = message.transaction
        if (own is not None and own.judged) or (own is None and message.outcome is Outcome.UNKNOWN):
            found["unknown messages"] += 1
        found[f"messages {message.outcome.value}"] += 1
        found["dead"] += message.is_dead
        found["redelivered"] += len(message.deliveries) > 1
    for transaction in reading.transactions:
        judged = "unknown, " if transaction.judged else ""
        found[f"transactions {judged}{transaction.outcome.value}"] += 1
    found["deliveries"] = len(reading.deliveries)
    found["unseen takes"] = sum(map(len, reading.unseen_takes.values()))
    return found
