"""Test the metrics of the store's queues, in total or by name, also of queues without a resource."""

from __future__ import annotations

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.servers import Server, eventually

READY = "penstock_queue_ready_messages"
DEAD = "penstock_queue_dead_messages"


def test_statistics_of_all_queues_together(new_operator: NewOperator, keeper: Keeper) -> None:
    operator = new_operator(sweep_s=1).ready()
    for name in ("orders", "returns"):
        keeper.declare(name)
        keeper.kill(name, 3)
        keeper.put(name, b"one", b"two")
    eventually(lambda: operator.metric(READY, queue="_other") == 4)
    assert operator.metric(DEAD, queue="_other") == 6
    assert operator.metric("penstock_queues") == 2
    assert 'queue="orders"' not in operator.page("metrics")[1]


def test_statistics_by_name(new_operator: NewOperator, keeper: Keeper, store: Server) -> None:
    operator = new_operator(sweep_s=1, queue_metrics="true", max_queues=2).ready()
    for name, number in (("orders", 3), ("returns", 2), ("few", 1)):
        keeper.declare(name)
        keeper.kill(name, number)
        keeper.put(name, *[b"one"] * number)
    eventually(lambda: operator.metric(READY) == 6)
    eventually(lambda: operator.metric(DEAD, queue="returns") == 2)
    page = operator.page("metrics")[1]
    assert page.count(f"\n{READY}{{") == 3
    assert 'queue="_other"' in page
    store.kill9()
    eventually(lambda: READY + "{" not in operator.page("metrics")[1])
    store.restart()
    eventually(lambda: operator.metric(DEAD, queue="returns") == 2)
