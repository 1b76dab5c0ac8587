"""Verdict on a run; for violations, report the seed, the faults and the histories of the messages concerned."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from services.store import DeadLetter
from tests.faults import order
from tests.faults.actors import ALL, POISON, SOLO
from tests.faults.checker import Violation, check, check_counts, outcomes
from tests.faults.history import Connection, Fault, Request
from tests.faults.reading import Delivery, Message, Reading, read
from tests.faults.run import SPECS, Outcome

SHOWN = 10  # violations reported in full
AROUND = 3  # requests of a connection shown before and after the one in question
MAX_DELIVERIES = {POISON: SPECS[POISON]["max_deliveries"]}
DEFAULT_MAX_DELIVERIES = 20


def judge(outcome: Outcome) -> tuple[Reading, list[Violation]]:
    dead = {queue: [letter.body for letter in letters] for queue, letters in outcome.dead.items()}
    reading = read(outcome.history, dead, outcome.faults, outcome.troubles)
    found = [Violation("stuck", text) for text in outcome.failures]
    found += _logged(outcome)
    if outcome.drain is None:  # without a drain, missing messages may still be queued
        return reading, found
    found += check(reading)
    found += check_counts(reading, outcome.counts)
    found += order.check_drain(reading, outcome.drain)
    found += order.check_abort(reading, SOLO)
    for queue in ALL:
        found += order.check_first(reading, queue)
        found += _dead_letters(queue, outcome)
    return reading, found


def _logged(outcome: Outcome) -> Iterator[Violation]:
    for trouble in outcome.troubles:
        if trouble.action != "session_lost":
            yield Violation(
                "logged", f"edge {trouble.edge} at {_at(outcome, trouble.at)}: {trouble.text[:2000]}"
            )


def _dead_letters(queue: str, outcome: Outcome) -> Iterator[Violation]:
    most = MAX_DELIVERIES.get(queue, DEFAULT_MAX_DELIVERIES)
    letters = outcome.dead.get(queue, [])
    for letter in letters:
        if not _is_explained(letter, most):
            yield Violation("dead", f"a dead letter of {queue} without a good reason: {letter}")
    if wrong := outcome.wrong_counts.get(queue):
        yield Violation("counters", f"{queue}: a recount of the stream differs by {wrong}")
    if sorted(outcome.redriven.get(queue, [])) != sorted(letter.body for letter in letters):
        yield Violation("dead", f"what was brought back to {queue} did not come again, each once")


def _is_explained(letter: DeadLetter, most: int) -> bool:
    return (
        letter.reason == "max_deliveries" and letter.acquired >= letter.failed == most and letter.error != ""
    )


# report


def _at(outcome: Outcome, moment: float) -> str:
    return f"{moment - outcome.history.began:8.3f} s"


def summary(outcome: Outcome, reading: Reading) -> str:
    """Return one line with the run's parameters and counts."""
    counted = outcomes(reading)
    resumed = [f.resumed - f.ended for f in outcome.faults if f.resumed is not None and f.ended is not None]
    parts = [f"seed {outcome.seed}", outcome.program, f"{outcome.seconds:.0f} s", f"{outcome.kills} kills"]
    parts += [f"{len(outcome.faults)} faults", f"{len(outcome.history.connections)} connections"]
    parts += [f"{len(reading.messages)} messages"]
    parts += [f"{number} {what}" for what, number in sorted(counted.items())]
    parts += [f"{sum(1 for _ in order.aborted(reading, SOLO))} aborts followed"]
    if resumed:
        parts.append(f"served again after {statistics.median(resumed):.1f} s, at most {max(resumed):.1f} s")
    return ", ".join(parts)


def report(outcome: Outcome, reading: Reading, violations: list[Violation]) -> str:
    lines = [
        f"FAULT_SEED={outcome.seed}: {len(violations)} violations",
        summary(outcome, reading),
        "",
        "Faults:",
    ]
    lines += [_describe_fault(outcome, fault) for fault in outcome.faults]
    for violation in violations[:SHOWN]:
        lines += ["", f"[{violation.rule}] {violation.text}"]
        for message in violation.messages:
            lines += _describe_message(outcome, message)
    if len(violations) > SHOWN:
        lines.append(f"... and {len(violations) - SHOWN} more")
    return "\n".join(lines)


def _describe_fault(outcome: Outcome, fault: Fault) -> str:
    there = _at(outcome, fault.ended) if fault.ended is not None else "never"
    served = _at(outcome, fault.resumed) if fault.resumed is not None else "never"
    return f"  {_at(outcome, fault.began)}  {fault.kind:8}{fault.target:8} there {there}  all serve {served}"


def _describe_message(outcome: Outcome, message: Message) -> Iterator[str]:
    dead = ", dead" if message.is_dead else ""
    yield f"  {message.body[:40]!r} ({len(message.body)} octets) in {message.queue}: {message.outcome.value}{dead}"
    yield from _describe_connection(outcome, message.connection, message.asked, message.place[0])
    for delivery in sorted(message.deliveries, key=lambda delivery: delivery.sent):
        yield f"    given out, then {delivery.end.value}:"
        yield from _describe_connection(outcome, delivery.connection, delivery.asked, _end_of(delivery))


def _end_of(delivery: Delivery) -> int:
    own = delivery.transaction
    return own.ended if own is not None and own.ended >= 0 else delivery.asked


def _describe_connection(outcome: Outcome, connection: Connection, first: int, last: int) -> Iterator[str]:
    how = f"{connection.ended.value} at {_at(outcome, connection.ended_at)}"
    yield f"    connection {connection.number} of {connection.actor} to edge {connection.edge}, {how}:"
    near = {*range(first - AROUND, first + AROUND + 1), *range(last - AROUND, last + AROUND + 1)}
    for index, request in enumerate(connection.requests):
        if index in near:
            mark = ">" if index == first else " "
            yield f"    {mark} {index:4}  {_describe_request(outcome, request)}"


def _describe_request(outcome: Outcome, request: Request) -> str:
    answered = _at(outcome, request.answered) if request.answered is not None else "-"
    what = f"{request.operation.name:7}{request.queue:7}"
    return f"{_at(outcome, request.sent)}..{answered:10}  {what}{request.outcome:8} {request.body[:24]!r}"
