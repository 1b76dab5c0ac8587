"""Each thing that an alert speaks of sounds, and tests see it when a rule is spoilt."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from services.store.model import errors
from services.store.model.errors import StoreError
from tests.chart.alert_cases import CASES, Case
from tests.chart.mutants import mutants
from tests.chart.rules import rules
from tests.chart.trying import run, run_each

OWN = rules()
OF = defaultdict[str, list[Case]](list)
for each in CASES:
    OF[each.alert].append(each)

# Of the store's refusals, those for which nothing sounds: the client did it, or asked for what is not to be.
SILENT = {
    "store_error": "is no refusal itself, but what all of them are",
    "queue_unknown": "a client names a queue that is not there",
    "access_denied": "a client asks for a queue that is not for it",
    "queue_unreadable": "a document of a newer version, or spoilt: an alarm of the console, which lists it as such",
    "queue_exists": "somebody declares what is there",
    "queue_changed": "two people change one document: the second looks again",
    "peer_changed": "two people change one peer: the second looks again",
    "queue_not_empty": "somebody deletes what holds messages",
    "number_taken": "somebody declares a number that is taken; PenstockResourcesNotReady, if it is a resource",
    "behind_refused": "follows what was refused before it, which is counted",
    "queue_full": "a limit that somebody set; what waits too long is PenstockBacklog",
    "too_large_for_peers": "a client's message is too large for where it goes",
    "queue_paused": "somebody paused it",
    "queue_reserved": "another client has it, as it asked for",
    "queue_served": "another client was faster",
    "reservation_lost": "a client came too late",
    "lease_lost": "a client came too late; penstock_queue_fenced_messages_total",
    "ack_level_refused": "somebody declares what the store cannot keep; PenstockResourcesNotReady, if it is a resource",
    "batch_differs": "a client uses one id twice",
    "bindings_changed": "is asked again at once",
    "numbers_scattered": "a neighbour's numbers; the link is broken off, and its gaps are PenstockLinkGaps",
    "domain_mismatch": "a client asks for a transaction over two domains",
    "reserved_name": "somebody names a queue as those of Penstock itself are named",
    "reason_unknown": "somebody redrives or removes dead letters by a reason that there is not",
    "report_unknown": "programs of two versions, while one is replaced; PenstockAnalyticsStale, if it lasts",
}


def test_each_alert_has_cases() -> None:
    assert OF.keys() == OWN.keys()


@pytest.mark.parametrize("alert", OWN)
def test_all_that_it_speaks_of_sounds(tmp_path: Path, alert: str) -> None:
    assert run(tmp_path, OWN[alert], OF[alert]) == ""


@pytest.mark.parametrize("alert", OWN)
def test_a_spoilt_one_is_seen(tmp_path: Path, alert: str) -> None:
    """Else a case is missing."""
    rule = OWN[alert]
    spoilt = list(mutants(rule["expr"], shows_value="$value" in str(rule["annotations"])))
    said = run_each(tmp_path, [{**rule, "expr": expr} for expr in spoilt], OF[alert]) if spoilt else []
    assert [expr for expr, each in zip(spoilt, said, strict=True) if not each] == []


def test_rules_are_spoilt_at_all() -> None:
    found = {alert: list(mutants(rule["expr"], shows_value=False)) for alert, rule in OWN.items()}
    assert {alert for alert, spoilt in found.items() if not spoilt} <= {
        "PenstockEdgesGone",
        "PenstockOperatorGone",
        "PenstockConsoleGone",
    }
    assert len(found["PenstockStoreRefuses"]) == 7
    assert len(found["PenstockRingNeighbourMissing"]) == 3


def test_each_refusal_of_the_store_sounds_or_says_why_not() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, StoreError)]
    reasons = {one.reason for one in kinds}
    expr = " ".join(rule["expr"] for rule in OWN.values())
    sounding = {reason for reason in reasons if f'"{reason}"' in expr.replace("|", '""')}
    assert reasons - sounding == SILENT.keys()
