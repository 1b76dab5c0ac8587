"""Every panel of every dashboard has data, on a real Prometheus with real processes and traffic."""

from __future__ import annotations

import re
import time
from typing import Any

from tests.chart.chart import NAME
from tests.monitoring.boards import METRIC, Ask, asks, every_board, everything, filled, load, named
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.prometheus import Prometheus, Target, scraped
from tests.monitoring.test_table import OF_CONTROL, ROWS, UNBORN, check, families, lint, scrape
from tests.monitoring.world import NAMESPACE, World
from tests.operator.resource_documents import queue
from tools.metrics_docs import rows

# Always 0 in this world, but with series; test_queries.py tests them with other values.
QUIET = UNBORN | {
    # links of the text protocol, which are not configured here
    "penstock_link_gaps_total",
    "penstock_link_messages_total",
    "penstock_links_following",
    "penstock_links_serving",
    # faults of the program, the store or its data
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
    # over before the scrape
    "penstock_console_jobs",
    "penstock_console_streams",
    "penstock_input_held_bytes",
    "penstock_operator_waiting",
    "penstock_output_held_bytes",
    "penstock_ring_leader",  # while the hanging node may lead
    "penstock_ring_led",
    "penstock_ring_members",
    "penstock_ring_predecessor",
    "penstock_ring_successor",
    "penstock_subscriptions",
    # occurs once: a first value is no increase
    "penstock_operator_removed_total",
    "penstock_ring_beacons_received_total",
    "penstock_ring_breaks_total",
    "penstock_ring_dials_total",
    "penstock_ring_messages_received_total",
    "penstock_ring_messages_returned_total",
    "penstock_ring_messages_sent_total",
    "penstock_sysv_dead_total",
    "penstock_sysv_waits_total",
    # not done in this test
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
    """Return the options of each variable while these are selected and everything else is "All"."""
    found = {}
    for each in board["templating"]["list"][1:]:
        called = re.fullmatch(r"label_values\((.*), (\w+)\)", each["definition"])
        assert called, each["definition"]
        found[each["name"]] = prometheus.values(called[2], filled(called[1], chosen))
        chosen.setdefault(each["name"], each["allValue"])
    return found


def test_every_panel_shows_data_of_real_processes(world: World, new_prometheus: NewPrometheus) -> None:
    """Every edge, one of them with two workers, the System V bridge, the operator and the console."""
    pods = world.targets()
    plain = {name: Target(pods[name].host, pods[name].port) for name in ("tmq", "operator")}
    prometheus = new_prometheus({"shop/penstock": pods.values(), "laptop": plain.values()})
    scraped(lambda: set(prometheus.targets().values()) == {"up"})
    world.others.meet()
    shows_something_in_every_panel(world, prometheus)
    shows_what_is_chosen(prometheus)
    scraped(lambda: without_series(world), until=lambda missing: not missing)
    lint(scrape(target) for target in pods.values())


def shows_something_in_every_panel(world: World, prometheus: Prometheus) -> None:
    """Each shows more than 0 at some time, if possible; some events occur once, or every few seconds."""
    waiting = [(board, ask) for board in every_board() for ask in asks(board) if not unborn(ask)]
    stirred = 0

    def still_empty() -> list[str]:
        nonlocal stirred
        stirred += 1
        stir(world)
        waiting[:] = [(board, ask) for board, ask in waiting if not shows(prometheus, ask, everything(board))]
        return [f"{ask.called}: {ask.expr}" for _, ask in waiting]

    scraped(still_empty, until=lambda left: not left)
    board = load("dead-letters")
    exprs = {
        ask.title: filled(ask.expr, {**everything(board), "namespace": NAMESPACE}) for ask in asks(board)
    }

    def dead() -> tuple[float, float]:
        ((_, dead),) = prometheus.query(exprs["Dead letters"])
        by_queue = {labels["queue"]: value for labels, value in prometheus.query(exprs["By queue"])}
        return dead - stirred, by_queue["dying"] - stirred

    # one is for a missing queue, two are the world's
    scraped(dead, until=lambda found: found == (3, 2))


def stir(world: World) -> None:
    """Cause the events that panels show."""
    world.use_console()
    world.traffic.lose()
    world.others.talk()
    world.keeper.kill("dying", 1)
    # the operator writes its conditions
    world.seen.apply(queue("stirred", maxLength=1000 + int(time.monotonic())))


def shows(prometheus: Prometheus, ask: Ask, chosen: dict[str, str]) -> bool:
    series = prometheus.query(filled(ask.expr, chosen))
    legends = [named(ask.legend, labels) for labels, _ in series]
    assert len(set(legends)) == len(legends), (ask.called, legends)
    assert all(legends), ask.called
    is_quiet = set(METRIC.findall(ask.expr)) <= QUIET
    return bool(series) if is_quiet else any(value > 0 for _, value in series)


def unborn(ask: Ask) -> bool:
    return bool(UNBORN & set(METRIC.findall(ask.expr)))


def shows_what_is_chosen(prometheus: Prometheus) -> None:
    """Select one namespace and job; for pod and job of an edge, also series of operator and console about it."""
    of_control = {row.measure.name for row in rows() if row.who in OF_CONTROL}
    of_edges = {"pod": f"{NAME}-tmq-0", "job": "shop/penstock"}
    for board in every_board():
        own = {"namespace": NAMESPACE, "job": "shop/penstock"}
        offered = choices(prometheus, board, **own)
        assert all(offered.values()), (board["title"], offered)
        for ask in asks(board):
            if not unborn(ask):
                assert prometheus.query(filled(ask.expr, {**everything(board), **own})), ask.called
                if of_control & set(METRIC.findall(ask.expr)):
                    assert prometheus.query(filled(ask.expr, {**everything(board), **of_edges})), ask.called
    ready = next(ask for ask in asks(load("overview")) if ask.title == "Ready pods")
    ((labels, pods),) = prometheus.query(filled(ready.expr, everything(load("overview")) | of_edges))
    assert (labels["edge"], pods) == ("tmq", 1)


def without_series(world: World) -> list[str]:
    """Return metrics of the table without series; every existing series matches the table."""
    world.others.talk()
    families_found = [
        found for target in world.targets().values() for found in families(scrape(target)).items()
    ]
    for name, family in families_found:
        check(name, family)
    sampled = {name for name, family in families_found if family.samples}
    return sorted((set(ROWS) - {name for name, _ in families_found}) | (set(ROWS) - sampled - UNBORN))
