"""Each case of an alert fires, and the values below its threshold do not."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from services.store.model import errors
from services.store.model.errors import StoreError
from tests.chart.alert_cases import CASES, Case
from tests.chart.rules import check, rules
from tests.chart.trying import document

OWN = rules()
OF = defaultdict[str, list[Case]](list)
for each in CASES:
    OF[each.alert].append(each)

# refusals of the store that fire no alert: they are expected, or errors of the client
SILENT = {
    "store_error": "the base class of all refusals",
    "queue_unknown": "a client names an unknown queue",
    "access_denied": "a client has no access to the queue",
    "queue_unreadable": "a document of a newer version, or corrupt: the console reports it",
    "queue_exists": "a user declares an existing queue",
    "queue_changed": "two users change one document: the second reads it again",
    "peer_changed": "two users change one peer: the second reads it again",
    "queue_not_empty": "a user deletes a queue with messages",
    "number_taken": "a user declares a number in use; PenstockResourcesNotReady, if by a resource",
    "behind_refused": "follows a refused message, which is counted",
    "queue_full": "a configured limit; PenstockBacklog, if messages wait too long",
    "too_large_for_peers": "a client's message is too large for its destination",
    "queue_paused": "a user paused it",
    "queue_reserved": "another client has reserved it",
    "queue_served": "another client was faster",
    "reservation_lost": "a client came too late",
    "lease_lost": "a client came too late; penstock_queue_fenced_messages_total",
    "ack_level_refused": "a user declares a level that the store lacks; PenstockResourcesNotReady, if by a resource",
    "batch_differs": "a client uses one id twice",
    "bindings_changed": "is retried at once",
    "numbers_scattered": "a neighbour's numbers; the link is broken off, and its gaps are PenstockLinkGaps",
    "domain_mismatch": "a client asks for a transaction over two domains",
    "reserved_name": "a user gives a queue a name reserved for Penstock",
    "reason_unknown": "a user redrives or removes dead letters by an unknown reason",
    "report_unknown": "programs of two versions, while one is replaced; PenstockAnalyticsStale, if it lasts",
}


def test_each_alert_fires_for_its_cases_only(tmp_path: Path) -> None:
    assert OF.keys() == OWN.keys()
    check(tmp_path, [([rule], document(rule, OF[alert])) for alert, rule in OWN.items()])


def test_each_reason_and_branch_of_a_rule_has_a_case() -> None:
    """Check that every branch of a rule has a case, so that the test above notices a removed branch."""
    named = 0
    for alert, rule in OWN.items():
        sounding = [str(case.sounds) for case in OF[alert]]
        for choice in re.findall(r'=~"([\w|]+)"', rule["expr"]):
            for word in choice.split("|"):
                named += 1
                assert any(f'"{word}"' in series for series in sounding), (alert, word)
        arms = len(re.findall(r"\bor\b(?! max_over_time)", rule["expr"])) + 1
        assert len(OF[alert]) >= arms, alert
    assert named > 20


def test_each_store_reason_has_an_alert_or_an_exception() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, StoreError)]
    reasons = {one.reason for one in kinds}
    expr = " ".join(rule["expr"] for rule in OWN.values())
    sounding = {reason for reason in reasons if f'"{reason}"' in expr.replace("|", '""')}
    assert reasons - sounding == SILENT.keys()
