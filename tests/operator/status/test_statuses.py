"""Test contents and writes of statuses on a real API server (docs/kubernetes.md, "Status")."""

from __future__ import annotations

from typing import Any

import pytest
from penstock_operator.cluster.resources import Kind
from penstock_operator.documents import conditions
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.status.events import MAX_MESSAGE, Severity
from penstock_operator.status.statuses import COUNTS_S

from tests.operator.inside import Inside, read
from tests.operator.resource_documents import Seen, queue

WRITTEN = "penstock_operator_status_patches_total"
TAKEN = "penstock_operator_events_total"


def deep(depth: int, reason: Reason = Reason.DECLARED) -> Verdict:
    return Verdict(Ready.YES, reason, "declared in the store", {"depth": depth})


async def settle(inside: Inside, seen: Seen, verdict: Verdict) -> dict[str, Any]:
    """Wait until the status is stable, and return it."""
    await inside.statuses.settle(read(seen, "queue", "orders"), verdict)
    return dict(read(seen, "queue", "orders").status)


async def test_counts_are_written_at_intervals(inside: Inside, seen: Seen) -> None:
    seen.apply(queue("orders"))
    assert (await settle(inside, seen, deep(1)))["depth"] == 1
    inside.clock.now += COUNTS_S - 1
    assert (await settle(inside, seen, deep(2)))["depth"] == 1
    assert inside.count(WRITTEN) == 1
    inside.clock.now += 1
    assert (await settle(inside, seen, deep(3)))["depth"] == 3
    inside.clock.now += COUNTS_S - 1
    assert (await settle(inside, seen, deep(4)))["depth"] == 3  # since the last write
    assert inside.count(WRITTEN) == 2


async def test_unchanged_status_is_not_written(inside: Inside, seen: Seen) -> None:
    seen.apply(queue("orders"))
    for _ in range(3):
        await settle(inside, seen, deep(1))
        inside.clock.now += 2 * COUNTS_S
    assert inside.count(WRITTEN) == 1


async def test_changed_verdict_is_written_at_once(inside: Inside, seen: Seen) -> None:
    seen.apply(queue("orders"))
    await settle(inside, seen, deep(1))
    status = await settle(inside, seen, deep(2, Reason.PAUSED))
    assert (status["depth"], status["conditions"][0]["reason"]) == (2, "Paused")
    assert inside.count(WRITTEN) == 2


async def test_new_generation_is_answered_at_once(inside: Inside, seen: Seen) -> None:
    """Check that a new generation is written at once, also with the same verdict."""
    seen.apply(queue("orders"))
    await settle(inside, seen, deep(1))
    seen.apply(queue("orders", maxLength=5))
    status = await settle(inside, seen, deep(1))
    assert status["observedGeneration"] == read(seen, "queue", "orders").generation == 2


async def test_written_status_is_known_before_the_watch_event(inside: Inside, seen: Seen) -> None:
    """Check that a written status is known before its watch event, so that the next pass does not write it again."""
    seen.apply(queue("orders"))
    await settle(inside, seen, deep(1))
    (known,) = inside.mirror.of(Kind.QUEUE)
    assert known.status["depth"] == 1
    await inside.statuses.settle(known, deep(1))
    assert inside.count(WRITTEN) == 1


@pytest.mark.parametrize("letter", ["x", "\u20ac", "\U0001f4ee"])  # of 1, 3 and 4 bytes
async def test_long_event_message_is_cut(inside: Inside, seen: Seen, letter: str) -> None:
    """Check that a long event message is cut between two characters of any size."""
    seen.apply(queue("orders"))
    resource = read(seen, "queue", "orders")
    await inside.recorder.record(resource, Severity.WARNING, "Invalid", "." + 5000 * letter)
    (event,) = seen.cluster.items("events", seen.namespace)
    assert set(event["message"][1:]) == {letter}
    assert MAX_MESSAGE - 4 < len(event["message"].encode()) <= MAX_MESSAGE
    assert inside.count(TAKEN) == 1


@pytest.mark.parametrize(
    "text",
    [
        "\u0119 \u20ac \U0001f4ee \U0010fffd",
        "\x00 \t \n \x7f \x85 \u2028 \ufeff \ufffe",
        "\\ud83d\\udcee \\\U0001f4ee \" ' : # {",
    ],
)
async def test_message_may_have_any_characters(inside: Inside, seen: Seen, text: str) -> None:
    """Check that a message may have any characters, as it contains names of queues and peers."""
    seen.apply(queue("orders"))
    status = await settle(inside, seen, Verdict(Ready.NO, Reason.INVALID, text))
    assert status["conditions"][0]["message"] == text


async def test_long_status_message_is_cut(inside: Inside, seen: Seen) -> None:
    seen.apply(queue("orders"))
    status = await settle(inside, seen, Verdict(Ready.NO, Reason.INVALID, "\U0001f4ee" * 50_000))
    assert status["conditions"][0]["message"] == "\U0001f4ee" * conditions.MAX_MESSAGE
    assert seen.events("orders") == ["Invalid"]


async def test_document_changed_meanwhile_is_reconciled_again(inside: Inside, seen: Seen) -> None:
    """Check that a document is reconciled again if the response to a status write shows a change before the watch."""
    seen.apply(queue("orders", maxLength=5))
    before = read(seen, "queue", "orders")
    inside.mirror.put(before)
    seen.apply(queue("orders", maxLength=9))
    await inside.statuses.settle(before, deep(1))
    assert read(seen, "queue", "orders").status["observedGeneration"] == 1
    assert inside.mirror.get(before.key) is before
    await settle(inside, seen, deep(2))
    assert inside.mirror.get(before.key) is before
    inside.mirror.put(read(seen, "queue", "orders"))
    await settle(inside, seen, deep(3, Reason.PAUSED))
    assert inside.mirror.get(before.key) == read(seen, "queue", "orders")
