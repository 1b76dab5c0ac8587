"""docs/metrics.md, "How many series there are": no name in metrics unless somebody said so, and a bounded number."""

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


def test_one_sum_of_each_namespace() -> None:
    assert shown(filled(0)) == {("shop", "_other"): 6, ("yard", "_other"): 7}


def test_by_name_up_to_a_bound() -> None:
    expected = {("shop", "orders"): 3, ("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "_other"): 7}
    assert shown(filled(2)) == expected


def test_what_is_gone_makes_room() -> None:
    depths = filled(2)
    depths.forget("shop", "orders")
    depths.forget("shop", "never-there")
    assert shown(depths) == {("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "_other"): 7}
    depths.set("yard", "orders", 8)
    assert shown(depths) == {("shop", "returns"): 2, ("shop", "_other"): 1, ("yard", "orders"): 8}


def test_the_operator_names_none_unless_told() -> None:
    for named, label in ((0, "_other"), (1, "orders")):
        metrics = Metrics(named)
        metrics.depth.set("shop", "orders", 3)
        assert metrics.registry.get_sample_value(NAME, {"namespace": "shop", "name": label}) == 3


def test_it_is_told_while_others_are_heard_of() -> None:
    """Whoever scrapes is answered by a thread, and queues come meanwhile."""
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
