"""Alerts sound on a real Prometheus when what they are about happens to real processes, and end when it is over.

Their times are cut short, in a copy of the rules of a release (hurry.py).
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.chart.chart import NAME, nested, render
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.hurry import WINDOW, ends, ends_are_known, hurried, sounds
from tests.monitoring.prometheus import Prometheus
from tests.monitoring.traffic import FULL
from tests.monitoring.world import World
from tests.operator.resource_documents import queue
from tests.reports import NOW_MS
from tests.servers import eventually

ON = {
    **nested("monitoring.prometheusRule.enabled", True),
    "analytics": {"enabled": True},
    **nested("edgeDefaults.replicas", 1),
}
ALWAYS = {
    # of a node that is alone, until it closes a ring with itself; of a peer and a collector that are not there
    "PenstockRingNeighbourMissing",
    "PenstockRingWithoutLeader",
    "PenstockQueueStuck",
    "PenstockTracesLost",
    "PenstockQueueFillsUp",  # its one message is all that it may hold
    "PenstockAnalyticsLoss",  # as the world's report has it
}
OF_THE_STORE = {"PenstockEdgeNotReady", "PenstockStoreRefuses", "PenstockOperatorStoreDown"}


def rules() -> dict[str, Any]:
    """Of a release with analytics."""
    return hurried(render(ON)[f"PrometheusRule/{NAME}"]["spec"]["groups"])


@pytest.fixture
def prometheus(world: World, new_prometheus: NewPrometheus) -> Prometheus:
    """It has looked at everything for as long as any rule looks back."""
    found = new_prometheus({"shop/penstock": world.targets().values()}, rules=rules())
    eventually(lambda: set(found.targets().values()) == {"up"})
    eventually(lambda: found.query(f"count_over_time(penstock_ready[1m:1s]) > {WINDOW[:-1]}"))
    return found


def test_they_sound_and_end(world: World, prometheus: Prometheus) -> None:
    ends_are_known(prometheus)
    sounds(prometheus, *ALWAYS)
    (labels,) = prometheus.firing()["PenstockQueueFillsUp"]
    assert labels == {"namespace": "shop", "queue": FULL, "severity": "warning"}
    assert prometheus.firing().keys() == ALWAYS, prometheus.firing()
    world.keeper.declare(FULL, maxLength=100_000)  # more than the world's traffic puts in
    ends(prometheus, ["PenstockQueueFillsUp"])

    world.keeper.kill("dying", 1)
    (labels,) = sounds(prometheus, "PenstockDeadLetters")
    assert labels == {"namespace": "shop", "queue": "dying", "severity": "warning"}
    ends(prometheus, ["PenstockDeadLetters"])

    world.traffic.lose()
    sounds(prometheus, "PenstockMessagesLost")

    world.seen.apply(queue("happy", queueName="dying"), queue("unhappy", queueName="dying"))
    (labels,) = sounds(prometheus, "PenstockResourcesNotReady")
    assert labels["reason"] == "Conflict"

    world.report(now_ms=NOW_MS)
    sounds(prometheus, "PenstockAnalyticsStale")
    world.report()
    ends(prometheus, ["PenstockAnalyticsStale", "PenstockMessagesLost"])


def test_a_store_that_is_away_is_told_by_all_who_need_it(world: World, prometheus: Prometheus) -> None:
    world.traffic.is_calm = False
    world.store.kill9()
    sounds(prometheus, *OF_THE_STORE)
    told = eventually(
        lambda: prometheus.firing().get("PenstockEdgeNotReady", []), until=lambda found: len(found) == 4
    )
    assert {labels["pod"] for labels in told} == {
        f"{NAME}-{edge}-0" for edge in ("pubsub", "ring", "rqp", "tmq")
    }
    world.store.restart()
    ends(prometheus, OF_THE_STORE)


def test_data_that_is_gone_is_told(world: World, prometheus: Prometheus) -> None:
    """The operator sets the empty store up before anybody has looked."""
    world.traffic.is_calm = False
    world.store.kill9()
    shutil.rmtree(world.store.directory)
    world.store.restart()
    (labels,) = sounds(prometheus, "PenstockStoreDataLost")
    assert labels == {"namespace": "shop", "severity": "critical"}
    ends(prometheus, ["PenstockStoreDataLost"])


def test_who_is_gone_is_missed(world: World, prometheus: Prometheus) -> None:
    world.traffic.is_calm = False
    world.operator.kill()
    (labels,) = sounds(prometheus, "PenstockOperatorGone", "PenstockPodDown")
    assert labels["pod"] == f"{NAME}-operator-0"
    world.up.kill()
    missed = eventually(
        lambda: prometheus.firing().get("PenstockEdgesGone", []), until=lambda found: len(found) == 4
    )
    assert {labels["edge"] for labels in missed} == {"pubsub", "ring", "rqp", "tmq"}
