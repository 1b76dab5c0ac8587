"""Test the contents of a status, and changes that are not written."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock_operator.documents.conditions import (
    MAX_MESSAGE,
    Ready,
    Reason,
    Verdict,
    condition,
    counts_differ,
    differs,
    status_of,
)
from penstock_operator.documents.refusals import refused

from services.store.model.errors import OutcomeUnknown

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
WELL = Verdict(Ready.YES, Reason.DECLARED, "as it is declared", {"depth": 3})
ILL = Verdict(Ready.NO, Reason.CONFLICT, "taken")


def test_first_status() -> None:
    assert status_of({}, WELL, 2, NOON) == {
        "observedGeneration": 2,
        "depth": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Declared",
                "message": "as it is declared",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }
        ],
    }


def test_transition_time_is_that_of_the_change() -> None:
    first = status_of({}, WELL, 1, NOON)
    paused = Verdict(Ready.YES, Reason.PAUSED, "paused")
    assert condition(status_of(first, paused, 2, LATER))["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    assert condition(status_of(first, ILL, 2, LATER))["lastTransitionTime"] == "2026-01-01T13:00:00Z"


def test_same_verdict_is_no_change() -> None:
    first = status_of({}, WELL, 1, NOON)
    again = status_of(first, WELL, 1, LATER)
    assert not differs(first, again)
    assert not counts_differ(first, again)
    of_others = {**first, "conditions": [{"type": "Theirs", "status": "True"}, *first["conditions"]]}
    assert not differs(of_others, status_of(of_others, WELL, 1, LATER))


def test_differences() -> None:
    first = status_of({}, WELL, 1, NOON)
    assert differs(first, status_of(first, WELL, 2, LATER))  # for another generation
    assert differs(first, status_of(first, ILL, 1, LATER))
    deeper = Verdict(Ready.YES, Reason.DECLARED, "as it is declared", {"depth": 4})
    assert not differs(first, status_of(first, deeper, 1, LATER))
    assert counts_differ(first, status_of(first, deeper, 1, LATER))


def test_a_long_message_is_cut() -> None:
    long = Verdict(Ready.NO, Reason.INVALID, "x" * 100_000)
    assert len(condition(status_of({}, long, 1, NOON))["message"]) == MAX_MESSAGE


def test_unknown_outcome_is_no_refusal() -> None:
    """Check that an unknown outcome is retried as an unavailable store: the resource need not change."""
    verdict = refused(OutcomeUnknown())
    assert (verdict.ready, verdict.reason) == (Ready.UNKNOWN, Reason.STORE_UNAVAILABLE)
