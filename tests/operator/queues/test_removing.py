"""Test deletion of Queues by their policy, which is never blocked (docs/kubernetes.md, "Deletion")."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.kubernetes.apiserver import ApiServer
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, queue
from tests.operator.rights import rights
from tests.servers import Server, eventually

FINALIZER = "penstock.dev/store"


def declared(seen: Seen, name: str, policy: str) -> None:
    seen.declared(queue(name, deletionPolicy=policy))
    if policy != "Retain":
        eventually(lambda: seen.get("queue", name)["metadata"].get("finalizers") == [FINALIZER])


def test_deletion_policy_is_applied(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    policies = {"kept": "Retain", "gone": "Delete", "changed": "Delete"}
    policies |= {"empty": "DeleteIfEmpty", "full": "DeleteIfEmpty"}
    keeper.declare("shared", owner="kubernetes elsewhere/shared")
    for name, policy in policies.items():
        declared(seen, name, policy)
    seen.apply(queue("changed", deletionPolicy="Retain"), queue("shared", deletionPolicy="Delete"))
    seen.becomes("queue", "shared", "False", "Conflict")
    eventually(lambda: not seen.get("queue", "changed")["metadata"].get("finalizers"))
    keeper.kill("gone", 3)
    keeper.put("gone", b"one", b"two")
    for name in ("kept", "full"):
        keeper.put(name, b"one")
    for name in (*policies, "shared"):
        seen.delete("queue", name, 10)
    left = {name: keeper.find(name) is not None for name in policies}
    assert left == {"kept": True, "gone": False, "changed": True, "empty": False, "full": True}
    assert (keeper.take("kept"), keeper.take("full")) == ([b"one"], [b"one"])
    assert keeper.owner("shared") == "kubernetes elsewhere/shared"
    eventually(lambda: seen.events("gone") == ["Declared", "Removed"])
    assert seen.event("gone", "Removed").endswith("with 2 messages and 3 dead letters")
    eventually(lambda: seen.events("full") == ["Declared", "Retained"])
    assert operator.metric("penstock_operator_removed_total", outcome="Removed") == 2
    seen.declared(queue("kept"))


def test_unavailable_store_does_not_block_deletion_forever(
    new_operator: NewOperator, seen: Seen, store: Server
) -> None:
    new_operator(delete_timeout_s=3).ready()
    declared(seen, "orders", "Delete")
    store.kill9()
    seen.delete("queue", "orders", 30)
    assert seen.events("orders")[-1] == "Abandoned"


def test_lost_domain_is_waited_for_and_reported(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    """Check that deletion of a queue in a lost domain is abandoned after the time limit, also by a new operator."""
    first = new_operator(delete_timeout_s=3).ready()
    seen.declared(queue("orders", deletionPolicy="Delete", domain="other"))
    eventually(lambda: seen.get("queue", "orders")["metadata"].get("finalizers") == [FINALIZER])
    keeper.lose_domain("other")
    first.kill()
    new_operator(delete_timeout_s=3)
    seen.delete("queue", "orders", 60)
    assert seen.events("orders")[-1] == "Abandoned"


def test_store_back_in_time_is_used(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    declared(seen, "orders", "Delete")
    store.kill9()
    seen.delete("queue", "orders", patience_s=0)
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    assert seen.get("queue", "orders")["metadata"]["deletionTimestamp"]
    store.start()
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    assert keeper.find("orders") is None


def test_time_limit_starts_with_the_operator(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Check that the time limit of a deletion starts again with the operator."""
    first = new_operator().ready()
    declared(seen, "orders", "Delete")
    first.kill()
    store.kill9()
    seen.delete("queue", "orders", patience_s=0)
    since = datetime.fromisoformat(seen.get("queue", "orders")["metadata"]["deletionTimestamp"])
    eventually(lambda: datetime.now(UTC) - since > timedelta(seconds=10))
    second = new_operator(delete_timeout_s=10)
    eventually(lambda: second.events("store_down") and tried(seen))
    store.start()
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    assert keeper.find("orders") is None
    assert seen.events("orders")[-1] == "Removed"


def tried(seen: Seen) -> bool:
    """Return whether kopf has noted at least one attempt, or the object is gone."""
    found = seen.cluster.items("queues", seen.namespace)
    return all("penstock.dev/leaving" in one["metadata"].get("annotations", {}) for one in found)


def test_queue_is_not_created_without_its_finalizer(
    api_server: ApiServer, seen: Seen, keeper: Keeper, store: Server, tmp_path: Path
) -> None:
    """Check that a queue is not created while its finalizer cannot be added, but once it can."""
    role, binding = rights("operator")
    unable = {**role, "rules": [without_patch(rule) for rule in role["rules"]]}
    user = api_server.as_user("operator")
    seen.apply(unable, binding)
    eventually(lambda: user.may("list", "queues.penstock.dev", seen.namespace))
    running = OperatorProgram(user, store.url, tmp_path, namespaces=seen.namespace, sweep_s=1).start()
    try:
        seen.apply(queue("orders", deletionPolicy="Delete"))
        seen.declared(queue("kept"))
        done = running.metric("penstock_operator_sweeps_total", result="done")
        eventually(lambda: running.metric("penstock_operator_sweeps_total", result="done") >= done + 2)
        found = seen.becomes("queue", "orders", "False", "Pending")
        assert "waiting for the finalizer penstock.dev/store" in found["message"]
        assert keeper.find("orders") is None
        seen.apply(role)
        seen.becomes("queue", "orders", "True", "Declared", 60)
        assert seen.get("queue", "orders")["metadata"]["finalizers"] == [FINALIZER]
        seen.delete("queue", "orders", 10)
        assert keeper.find("orders") is None
    finally:
        running.kill()


def test_queue_kept_by_a_foreign_finalizer_reports_its_state(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    operator = new_operator(queue_metrics="true").ready()
    for name, policy in (("gone", "Delete"), ("kept", "Retain")):
        document = queue(name, deletionPolicy=policy)
        seen.declared({**document, "metadata": {"name": name, "finalizers": ["example.org/hold"]}})
    depth = f'penstock_operator_queue_depth{{name="gone",namespace="{seen.namespace}"}}'
    assert depth in operator.page("metrics")[1]
    for name, message in (
        ("gone", "the queue was deleted"),
        ("kept", "the queue stays in the store (deletionPolicy)"),
    ):
        seen.delete("queue", name, patience_s=0)
        found = seen.becomes("queue", name, "False", "Removed")
        assert found["message"] == f"{message}; the resource waits for the finalizers example.org/hold"
    assert (keeper.find("gone"), keeper.owner("kept")) == (None, f"kubernetes {seen.namespace}/kept")
    assert depth not in operator.page("metrics")[1]
    eventually(lambda: seen.events("gone") == ["Declared", "Removed"])
    for name in ("gone", "kept"):
        seen.finalizers("queue", name)
    seen.declared(queue("kept"))


def without_patch(rule: dict[str, Any]) -> dict[str, Any]:
    """Return permissions without `patch` of resources; their statuses are writable."""
    verbs = [verb for verb in rule["verbs"] if verb != "patch" or "queues/status" in rule["resources"]]
    return {**rule, "verbs": verbs}


def test_queue_deleted_while_being_reconciled(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    seen.declared(queue("before"))
    before = operator.metric("penstock_operator_looks_total", kind="queues")
    store.stop()
    seen.renew(queue("before", maxLength=5))
    seen.apply(queue("orders"))
    seen.delete("queue", "orders", 10)
    seen.apply(queue("last", deletionPolicy="Delete"))
    # it already knows of the deletion
    eventually(lambda: seen.get("queue", "last")["metadata"].get("finalizers"))
    store.cont()
    eventually(lambda: operator.metric("penstock_operator_looks_total", kind="queues") >= before + 2)
    seen.becomes("queue", "before", "True", "Declared")
    assert keeper.find("orders") is None


def test_policy_change_while_the_store_is_unavailable(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Check that a change to Retain lets the resource be deleted at once and keeps the queue."""
    declared(seen, "orders", "Delete")
    keeper.put("orders", b"one")
    store.kill9()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    seen.delete("queue", "orders", patience_s=0)
    assert seen.get("queue", "orders")["metadata"]["finalizers"] == [FINALIZER]
    seen.apply(queue("orders", deletionPolicy="Retain"))
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    store.start()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 1)
    assert keeper.take("orders") == [b"one"]
    assert operator.metric("penstock_operator_removed_total") == 0


def test_queues_deleted_while_the_operator_was_down(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    first = new_operator().ready()
    for policy in ("Delete", "Retain"):
        declared(seen, policy.lower(), policy)
    first.kill()
    for name in ("delete", "retain"):
        seen.delete("queue", name, patience_s=0)
    new_operator().ready()
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))
    assert keeper.find("delete") is None
    assert keeper.find("retain") is not None
