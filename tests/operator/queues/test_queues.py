"""Test Queue resources on a real API server and a real store (docs/kubernetes.md, "Queue")."""

from __future__ import annotations

import re

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import Server, eventually
from tests.store.desk import numbered

QUICK_S = 2.0  # the limit for one Queue


def test_queue_is_declared_and_changed(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.apply(queue("orders", maxLength=5))
    found = seen.becomes("queue", "orders", "True", "Declared", QUICK_S)
    assert found["message"] == "declared in the store"
    kept = keeper.find("orders")
    assert kept is not None
    assert (kept.owner, kept.spec.max_length) == (f"kubernetes {seen.namespace}/orders", 5)
    assert seen.get("queue", "orders")["status"]["ackLevel"] == "fsync"
    seen.apply(queue("orders", maxLength=7, messageTTL="1h"))
    changed = seen.becomes("queue", "orders", "True", "Declared", QUICK_S)
    assert changed["lastTransitionTime"] == found["lastTransitionTime"]
    kept = keeper.spec("orders")
    assert (kept.max_length, kept.message_ttl) == (7, 3_600_000)
    eventually(lambda: seen.events("orders") == ["Declared"])
    # with Retain, a deletion does not wait
    assert seen.get("queue", "orders")["metadata"].get("finalizers") is None


def test_counts_are_in_the_status(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.declared(queue("orders"))
    keeper.put("orders", *numbered(3))
    keeper.kill("orders", 2, first=3)  # all were taken and refused
    seen.apply(queue("orders", maxLength=100))  # changes of counts alone are rarely written
    eventually(lambda: seen.get("queue", "orders")["status"]["dead"] == 5)
    assert seen.get("queue", "orders")["status"]["depth"] == 0
    assert re.search(
        r"orders +True +Declared +0 +0 +5 ", seen.cluster.kubectl("get", "queues", "-n", seen.namespace)
    )


def test_paused_queue_with_another_name_in_the_store(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    seen.apply(queue("orders", queueName="Zam\u00f3wienia 1", paused=True))
    seen.becomes("queue", "orders", "True", "Paused")
    seen.declared(queue("orders", queueName="Zam\u00f3wienia 1", paused=False))
    assert keeper.owner("Zam\u00f3wienia 1") == f"kubernetes {seen.namespace}/orders"


def test_unsupported_ack_level(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.apply(queue("orders", ackLevel="replicated:2"))
    found = seen.becomes("queue", "orders", "False", "AckLevelRefused")
    assert "replica" in found["message"]
    assert keeper.find("orders") is None
    eventually(lambda: seen.events("orders") == ["AckLevelRefused"])
    seen.declared(queue("orders"))


def test_queue_waits_for_its_peer(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.apply(queue("out", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["shop"]}))
    found = seen.becomes("queue", "out", "False", "UnknownPeer")
    assert found["message"] == "there is no Peer shop: create it; messages wait until then"
    keeper.put("out", b"waits")
    seen.apply(peer("shop"))
    seen.becomes("queue", "out", "True", "Declared", QUICK_S)
    seen.apply(peer("shop", "text"))
    found = seen.becomes("queue", "out", "False", "UnknownPeer", QUICK_S)
    assert found["message"] == (
        "Peer shop uses text, not the Queue's protocol rqp-mca: name another Peer; messages wait until then"
    )
    seen.apply(peer("shop"))
    seen.becomes("queue", "out", "True", "Declared", QUICK_S)
    seen.delete("peer", "shop")
    seen.becomes("queue", "out", "False", "UnknownPeer", QUICK_S)
    assert keeper.stats("out")["ready"] == 1


def test_drift_is_corrected(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    new_operator(sweep_s=1).ready()
    seen.declared(queue("orders", maxLength=5))
    keeper.declare("orders", owner="cli", max_length=9)
    eventually(lambda: keeper.owner("orders") == f"kubernetes {seen.namespace}/orders")
    assert keeper.spec("orders").max_length == 5
    keeper.remove("orders")
    eventually(lambda: keeper.owner("orders") == f"kubernetes {seen.namespace}/orders")


def test_existing_queue_is_adopted_with_its_messages(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Check that an existing queue is adopted with its messages, unless it is in another domain."""
    keeper.declare("orders", max_length=9)
    keeper.declare("far", domain="other")
    keeper.put("orders", b"one")
    seen.declared(queue("orders", maxLength=5))
    seen.apply(queue("far"))
    found = seen.becomes("queue", "far", "False", "Conflict")
    assert "is in domain 'other' and cannot move to 'main'" in found["message"]
    assert keeper.owner("far") == "file"
    assert keeper.owner("orders") == f"kubernetes {seen.namespace}/orders"
    assert keeper.take("orders") == [b"one"]


def test_number_of_a_file_queue(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    new_operator(sweep_s=1).ready()
    keeper.declare("old", bindings={"rqpMca": {"queueId": 7}})
    seen.apply(queue("new", bindings={"rqpMca": {"queueId": 7}}))
    found = seen.becomes("queue", "new", "False", "Conflict")
    assert "rqp-mca 7" in found["message"]
    assert "'old'" in found["message"]
    keeper.remove("old")
    seen.becomes("queue", "new", "True", "Declared")


def test_other_refusals_of_the_store(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that other refusals are reported with the store's text and do not block other Queues."""
    seen.declared(queue("orders"))
    keeper.spoil("orders")
    seen.apply(queue("orders", maxLength=5), queue("other"))
    found = seen.becomes("queue", "orders", "False", "Refused")
    assert "WRONGTYPE" in found["message"]
    seen.becomes("queue", "other", "True", "Declared")
    eventually(lambda: seen.events("orders") == ["Declared", "Refused"])


def test_queue_with_a_large_document(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check a document above the limit of annotations: changes are noticed, and the message is cut."""
    peers = [f"{number:03}".ljust(250, "x") for number in range(1000)]
    access = {"certificates": [f"{number:03}".ljust(250, "x") for number in range(200)]}
    remote = {"protocol": "rqp-mca", "queueId": 7, "peers": peers}
    document = queue("out", remote=remote, access=access, deletionPolicy="Delete")
    seen.cluster.create(document, seen.namespace)
    found = seen.becomes("queue", "out", "False", "UnknownPeer")
    assert found["message"].startswith("there is no Peer 000x")
    seen.cluster.patch("queue", "out", {"spec": {"maxLength": 5}}, seen.namespace)
    seen.becomes("queue", "out", "False", "UnknownPeer")
    assert keeper.spec("out").max_length == 5
    eventually(lambda: len(notes(seen, "out")) == 2)
    assert sum(map(len, notes(seen, "out").values())) < 1000
    assert max(map(len, operator.text().splitlines())) < 5000
    seen.delete("queue", "out", 30)
    assert "Traceback" not in operator.text()


def notes(seen: Seen, name: str) -> dict[str, str]:
    """Return kopf's annotations."""
    found: dict[str, str] = seen.get("queue", name)["metadata"].get("annotations", {})
    return {name: text for name, text in found.items() if name.startswith("penstock.dev/")}


def test_empty_store_gets_its_queues_again(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    seen.apply(queue("orders"), queue("invoices", bindings={"rqpCast": {"key": 7}}), peer("shop"))
    seen.becomes("queue", "orders", "True", "Declared")
    store.clear()
    eventually(lambda: keeper.owner("orders") and keeper.owner("invoices") and keeper.peers())
    seen.becomes("queue", "orders", "True", "Declared")
    assert operator.metric("penstock_operator_store_restored_total") == 1
    assert len(operator.events("store_restored")) == 1
