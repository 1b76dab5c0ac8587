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
