"""Alerts fire on a real Prometheus after faults of real processes, and stop when the fault is over.

A copy of a release's rules has shorter times (hurry.py).
"""

from __future__ import annotations

import shutil

from tests.chart.chart import NAME, nested, render
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.hurry import WINDOW, ends, ends_are_known, hurried, sounds
from tests.monitoring.prometheus import Prometheus, scraped
from tests.monitoring.traffic import FULL
from tests.monitoring.world import World
from tests.operator.resource_documents import queue
from tests.reports import NOW_MS

ON = {
    **nested("monitoring.prometheusRule.enabled", True),
    "analytics": {"enabled": True},
    **nested("edgeDefaults.replicas", 1),
}
ALWAYS = {
    # of a single node until it closes a ring with itself; of a missing peer and collector
    "PenstockRingNeighbourMissing",
    "PenstockRingWithoutLeader",
    "PenstockQueueStuck",
    "PenstockTracesLost",
    "PenstockQueueFillsUp",  # its one message reaches its limit
    "PenstockAnalyticsLoss",  # the world's report has this date
}
OF_THE_STORE = {"PenstockEdgeNotReady", "PenstockStoreRefuses", "PenstockOperatorStoreDown"}


def test_alerts_fire_for_real_failures_and_resolve(world: World, new_prometheus: NewPrometheus) -> None:
    """One world for all failures, since creating it takes longest; the last one is its end."""
    rules = hurried(render(ON)[f"PrometheusRule/{NAME}"]["spec"]["groups"])
    prometheus = new_prometheus({"shop/penstock": world.targets().values()}, rules=rules)
    scraped(lambda: set(prometheus.targets().values()) == {"up"})
    # for the range of every rule
    scraped(lambda: prometheus.query(f"count_over_time(penstock_ready[1m:1s]) > {WINDOW[:-1]}"))
    queues_resources_and_reports(world, prometheus)
    world.traffic.is_calm = False
    the_store_is_away(world, prometheus)
    its_data_is_gone(world, prometheus)
    everything_is_gone(world, prometheus)


def queues_resources_and_reports(world: World, prometheus: Prometheus) -> None:
    ends_are_known(prometheus)
    sounds(prometheus, *ALWAYS)
    (labels,) = prometheus.firing()["PenstockQueueFillsUp"]
    assert labels == {"namespace": "shop", "queue": FULL, "severity": "warning"}
    assert prometheus.firing().keys() == ALWAYS, prometheus.firing()

    world.keeper.declare(FULL, maxLength=100_000)  # more than the world's traffic
    world.keeper.kill("dying", 1)
    world.traffic.lose()
    world.seen.apply(queue("happy", queueName="dying"), queue("unhappy", queueName="dying"))
    world.report(now_ms=NOW_MS)
    (labels,) = sounds(prometheus, "PenstockDeadLetters")
    assert labels == {"namespace": "shop", "queue": "dying", "severity": "warning"}
    sounds(prometheus, "PenstockMessagesLost")
    (labels,) = sounds(prometheus, "PenstockResourcesNotReady")
    assert labels["reason"] == "Conflict"
    sounds(prometheus, "PenstockAnalyticsStale")
    world.report()
    ended = ("QueueFillsUp", "DeadLetters", "MessagesLost", "AnalyticsStale")
    ends(prometheus, [f"Penstock{name}" for name in ended])


def the_store_is_away(world: World, prometheus: Prometheus) -> None:
    """Every process that needs the store alerts."""
    world.store.kill9()
    sounds(prometheus, *OF_THE_STORE)
    found = scraped(
        lambda: prometheus.firing().get("PenstockEdgeNotReady", []), until=lambda found: len(found) == 4
    )
    pods = {f"{NAME}-{edge}-0" for edge in ("pubsub", "ring", "rqp", "tmq")}
    assert {labels["pod"] for labels in found} == pods
    world.store.restart()
    ends(prometheus, OF_THE_STORE)


def its_data_is_gone(world: World, prometheus: Prometheus) -> None:
    """Let the operator set up the empty store before any edge has polled."""
    world.store.kill9()
    shutil.rmtree(world.store.directory)
    world.store.restart()
    (labels,) = sounds(prometheus, "PenstockStoreDataLost")
    assert labels == {"namespace": "shop", "severity": "critical"}
    ends(prometheus, ["PenstockStoreDataLost"])


def everything_is_gone(world: World, prometheus: Prometheus) -> None:
    world.operator.kill()
    world.up.kill()
    sounds(prometheus, "PenstockOperatorGone")
    scraped(
        lambda: prometheus.firing().get("PenstockPodDown", []),
        until=lambda found: f"{NAME}-operator-0" in {labels["pod"] for labels in found},
    )
    missed = scraped(
        lambda: prometheus.firing().get("PenstockEdgesGone", []), until=lambda found: len(found) == 4
    )
    assert {labels["edge"] for labels in missed} == {"pubsub", "ring", "rqp", "tmq"}
