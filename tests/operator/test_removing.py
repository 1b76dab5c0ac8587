"""Queues that go (docs/kubernetes.md, "Deletion"): by their policy, and never so that something hangs."""

from __future__ import annotations

import pytest

from tests.operator.conftest import NewOperator
from tests.operator.documents import Seen, queue
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.servers import Server, eventually

FINALIZER = "penstock.dev/store"


def declared(seen: Seen, name: str, policy: str) -> None:
    seen.apply(queue(name, deletionPolicy=policy))
    seen.becomes("queue", name, "True", "Declared")
    if policy != "Retain":
        eventually(lambda: seen.get("queue", name)["metadata"].get("finalizers") == [FINALIZER])


def test_retain_keeps_queue_and_messages(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    declared(seen, "orders", "Retain")
    keeper.put("orders", b"one")
    seen.delete("queue", "orders", "--timeout=10s")
    assert keeper.take("orders") == [b"one"]
    seen.apply(queue("orders"))
    seen.becomes("queue", "orders", "True", "Declared")


def test_delete_takes_all(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    declared(seen, "orders", "Delete")
    keeper.put("orders", b"one", b"two")
    seen.delete("queue", "orders", "--timeout=10s")
    assert keeper.find("orders") is None
    assert seen.events("orders") == ["Declared", "Removed"]
    assert operator.metric("penstock_operator_removed_total", outcome="Removed") == 1


def test_delete_if_empty(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    for name in ("empty", "full"):
        declared(seen, name, "DeleteIfEmpty")
    keeper.put("full", b"one")
    seen.delete("queue", "empty", "--timeout=10s")
    seen.delete("queue", "full", "--timeout=10s")
    assert keeper.find("empty") is None
    assert keeper.take("full") == [b"one"]
    assert seen.events("full") == ["Declared", "Retained"]


def test_a_policy_may_change(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    declared(seen, "orders", "Delete")
    seen.apply(queue("orders", deletionPolicy="Retain"))
    eventually(lambda: not seen.get("queue", "orders")["metadata"].get("finalizers"))
    seen.delete("queue", "orders", "--timeout=10s")
    assert keeper.find("orders") is not None


def test_a_queue_of_another_resource_stays(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Who lost a conflict takes nothing along."""
    keeper.declare("shared", owner="kubernetes elsewhere/shared")
    seen.apply(queue("shared", deletionPolicy="Delete"))
    seen.becomes("queue", "shared", "False", "Conflict")
    seen.delete("queue", "shared", "--timeout=10s")
    assert keeper.owner("shared") == "kubernetes elsewhere/shared"


def test_a_store_that_is_away_holds_nobody_for_ever(
    new_operator: NewOperator, seen: Seen, store: Server
) -> None:
    new_operator(delete_timeout_s=3).ready()
    declared(seen, "orders", "Delete")
    store.kill9()
    seen.delete("queue", "orders", "--timeout=30s")
    assert seen.events("orders")[-1] == "Abandoned"


def test_a_store_that_comes_back_in_time_is_asked(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    declared(seen, "orders", "Delete")
    store.kill9()
    seen.delete("queue", "orders", "--wait=false")
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    assert seen.get("queue", "orders")["metadata"]["deletionTimestamp"]
    store.start()
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    assert keeper.find("orders") is None


def test_a_policy_may_change_while_the_store_is_away(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Who waits for it may let the resource go at once, and keeps the queue."""
    declared(seen, "orders", "Delete")
    keeper.put("orders", b"one")
    store.kill9()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    seen.delete("queue", "orders", "--wait=false")
    assert seen.get("queue", "orders")["metadata"]["finalizers"] == [FINALIZER]
    seen.apply(queue("orders", deletionPolicy="Retain"))
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    store.start()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 1)
    assert keeper.take("orders") == [b"one"]
    assert operator.metric("penstock_operator_removed_total") == 0


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_what_went_while_the_operator_was_away(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, policy: str
) -> None:
    first = new_operator().ready()
    declared(seen, "orders", policy)
    first.kill()
    seen.delete("queue", "orders", "--wait=false")
    new_operator().ready()
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    assert (keeper.find("orders") is None) == (policy == "Delete")
