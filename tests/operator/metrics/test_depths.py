"""Test docs/metrics.md, "How many series there are": queue names only if enabled, and up to a limit."""

from __future__ import annotations

from threading import Event, Thread

from penstock_operator.metrics.depths import Depths
from penstock_operator.metrics.metrics import Metrics

NAME = "penstock_operator_queue_depth"


def shown(depths: Depths) -> dict[tuple[str, str], float]:
    (family,) = depths.collect()
    return {(each.labels["namespace"], each.labels["name"]): each.value for each in family.samples}


def filled(most: int) -> Depths:
    depths = Depths(most)
    for name, depth in (("orders", 3), ("returns", 2), ("few", 1)):
        depths.set("shop", name, depth)
    depths.set("yard", "orders", 7)
    return depths


def test_depth_is_summed_per_namespace() -> None:
    assert shown(filled(0)) == {("shop", "_other"): 6, ("yard", "_other"): 7}


def test_names_are_limited() -> None:
    expected = {("shop", "orders"): 3, ("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "_other"): 7}
    assert shown(filled(2)) == expected


def test_deleted_queue_frees_its_name() -> None:
    depths = filled(2)
    depths.forget("shop", "orders")
    depths.forget("shop", "never-there")
    assert shown(depths) == {("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "_other"): 7}
    depths.set("yard", "orders", 8)
    assert shown(depths) == {("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "orders"): 8}


def test_no_names_by_default() -> None:
    for named, label in ((0, "_other"), (1, "orders")):
        metrics = Metrics(named)
        metrics.depth.set("shop", "orders", 3)
        assert metrics.registry.get_sample_value(NAME, {"namespace": "shop", "name": label}) == 3


def test_scrape_during_changes() -> None:
    """Check that a scrape, which runs in a thread, succeeds while queues are added."""
    depths, is_over = Depths(0), Event()

    def hear() -> None:
        number = 0
        while not is_over.is_set():
            depths.set("shop", f"q{number % 5000}", 1)
            depths.forget("shop", f"q{(number - 2500) % 5000}")
            number += 1

    hearing = Thread(target=hear)
    hearing.start()
    try:
        for _ in range(300):
            shown(depths)
    finally:
        is_over.set()
        hearing.join()
