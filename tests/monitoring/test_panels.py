"""Every panel of every dashboard shows something, on a real Prometheus that scrapes real processes with real work."""

from __future__ import annotations

import re
import time
from typing import Any

from tests.chart.chart import NAME
from tests.monitoring.boards import METRIC, Ask, asks, every_board, everything, filled, load, named
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.prometheus import Prometheus, Target
from tests.monitoring.test_table import OF_CONTROL, UNBORN
from tests.monitoring.world import NAMESPACE, World
from tests.operator.resource_documents import queue
from tests.servers import eventually
from tools.metrics_docs import rows

# Not more than 0 in the world of these tests, where they have series all the same; test_queries.py has them rise.
QUIET = UNBORN | {
    # of neighbours over the text protocol, of which there are none
    "penstock_link_gaps_total",
    "penstock_link_messages_total",
    "penstock_links_following",
    "penstock_links_serving",
    # what must not be: a fault of ours, of the store or of its data
    "penstock_console_audit_failures_total",
    "penstock_local_errors_total",
    "penstock_operator_store_restored_total",
    "penstock_queue_dead_trimmed_messages_total",
    "penstock_queues_unread",
    "penstock_ring_beacons_unsent_total",
    "penstock_ring_users_dropped_total",
    "penstock_rqp_cast_unburied_total",
    "penstock_rqp_cast_confirmations_lost_total",
    "penstock_rqp_cast_excess_bytes_total",
    "penstock_rqp_cast_held_messages_total",
    "penstock_rqp_cast_id_clashes_total",
    "penstock_slow_subscribers",
    # what is over when somebody looks
    "penstock_console_jobs",
    "penstock_console_streams",
    "penstock_input_held_bytes",
    "penstock_operator_waiting",
    "penstock_output_held_bytes",
    "penstock_ring_leader",  # while the node that hangs may lead
    "penstock_ring_led",
    "penstock_ring_members",
    "penstock_ring_predecessor",
    "penstock_ring_successor",
    "penstock_subscriptions",
    # what happens once there: a first value is no increase
    "penstock_operator_removed_total",
    "penstock_ring_beacons_received_total",
    "penstock_ring_breaks_total",
    "penstock_ring_dials_total",
    "penstock_ring_messages_received_total",
    "penstock_ring_messages_returned_total",
    "penstock_ring_messages_sent_total",
    "penstock_sysv_dead_total",
    "penstock_sysv_waits_total",
    # what nobody does there
    "penstock_operator_redriven_total",
    "penstock_queue_duplicates_total",
    "penstock_queue_emptied_messages_total",
    "penstock_queue_expired_messages_total",
    "penstock_queue_fenced_messages_total",
    "penstock_queue_purged_messages_total",
    "penstock_queue_redriven_messages_total",
    "penstock_queue_rejected_messages_total",
    "penstock_queue_returned_messages_total",
}


def choices(prometheus: Prometheus, board: dict[str, Any], **chosen: str) -> dict[str, set[str]]:
    """What each variable offers, where these are chosen and all of everything else."""
    found = {}
    for each in board["templating"]["list"][1:]:
        called = re.fullmatch(r"label_values\((.*), (\w+)\)", each["definition"])
        assert called, each["definition"]
        found[each["name"]] = prometheus.values(called[2], filled(called[1], chosen))
        chosen.setdefault(each["name"], each["allValue"])
    return found


def empty(prometheus: Prometheus, board: dict[str, Any], **chosen: str) -> list[str]:
    """Panels without data, or whose legends do not say which series is which."""
    found = []
    for ask in asks(board):
        series = prometheus.query(filled(ask.expr, {**everything(board), **chosen}))
        if not series and not UNBORN & set(METRIC.findall(ask.expr)):
            found.append(f"{ask.called}: {ask.expr}")
        shown = [named(ask.legend, labels) for labels, _ in series]
        if len(set(shown)) != len(shown) or not all(shown):
            found.append(f"{ask.called}: legends {shown}")
    return found


def test_every_panel_shows_something(world: World, new_prometheus: NewPrometheus) -> None:
    """Whatever is chosen: everything, or one namespace and job."""
    pods = world.targets()
    plain = {name: Target(pods[name].host, pods[name].port) for name in ("tmq", "operator")}
    prometheus = new_prometheus({"shop/penstock": pods.values(), "laptop": plain.values()})
    eventually(lambda: set(prometheus.targets().values()) == {"up"})
    world.others.meet()
    wrong = eventually(lambda: all_empty(prometheus, world), until=lambda found: not found)
    assert wrong == []
    for board in every_board():
        assert empty(prometheus, board, namespace=NAMESPACE, job="shop/penstock") == []
        offered = choices(prometheus, board, namespace=NAMESPACE, job="shop/penstock")
        assert all(offered.values()), (board["title"], offered)
    check_numbers(prometheus)
    silent = [(board, ask) for board in every_board() for ask in asks(board) if speaks(ask)]
    eventually(lambda: quiet(prometheus, world, silent), until=lambda found: not found)
    check_one_pod(prometheus)


def all_empty(prometheus: Prometheus, world: World) -> list[str]:
    world.others.talk()
    return [line for board in every_board() for line in empty(prometheus, board)]


def speaks(ask: Ask) -> bool:
    return not set(METRIC.findall(ask.expr)) <= QUIET


def quiet(prometheus: Prometheus, world: World, silent: list[tuple[dict[str, Any], Ask]]) -> list[str]:
    """Queries that have shown nothing but 0 so far, though what they are about happens; others leave the list.

    Some of it happens every few seconds, so not all need to show it at once.
    """
    for stir in (
        world.look,
        world.traffic.lose,
        world.others.talk,
        lambda: world.keeper.kill("dying", 1),
        lambda: change(world),
    ):
        stir()
    silent[:] = [
        (board, ask)
        for board, ask in silent
        if not any(value > 0 for _, value in prometheus.query(filled(ask.expr, everything(board))))
    ]
    return [ask.called for _, ask in silent]


def change(world: World) -> None:
    """A resource, which the operator writes about."""
    world.seen.apply(queue("stirred", maxLength=1000 + int(time.monotonic())))


def check_numbers(prometheus: Prometheus) -> None:
    """Some that are known."""
    board = load("dead-letters")
    found = {ask.title: ask.expr for ask in asks(board)}
    chosen = {**everything(board), "namespace": NAMESPACE}
    ((_, dead),) = prometheus.query(filled(found["Dead letters"], chosen))
    assert dead == 3  # one is what no local queue takes
    by_queue = prometheus.query(filled(found["By queue"], chosen))
    assert {labels["queue"]: value for labels, value in by_queue}["dying"] == 2


def check_one_pod(prometheus: Prometheus) -> None:
    """Who chooses a pod or a job of an edge sees what operator and console tell all the same, and no other pod."""
    of_edges = {"pod": f"{NAME}-tmq-0", "job": "shop/penstock"}
    hidden = re.compile("|".join(sorted(row.measure.name for row in rows() if row.who in OF_CONTROL)))
    for board in every_board():
        assert [line for line in empty(prometheus, board, **of_edges) if hidden.search(line)] == []
    ready = next(ask for ask in asks(load("overview")) if ask.title == "Pods that take requests")
    ((labels, pods),) = prometheus.query(filled(ready.expr, everything(load("overview")) | of_edges))
    assert (labels["edge"], pods) == ("tmq", 1)


def test_without_kubernetes_series_have_no_namespace(world: World, new_prometheus: NewPrometheus) -> None:
    """On a laptop: an overview, and what one edge does."""
    places = {name: Target(target.host, target.port) for name, target in world.targets().items()}
    prometheus = new_prometheus({"penstock": places.values()})
    world.others.meet()

    def still_empty() -> list[str]:
        return [line for line in empty(prometheus, load("overview")) if "legends" not in line]

    eventually(still_empty, until=lambda found: not found)
