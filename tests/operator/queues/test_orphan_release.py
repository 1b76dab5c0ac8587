"""Test that retained objects in the store lose their owner (docs/kubernetes.md, "Several operators on one store")."""

from __future__ import annotations

from tests.kubernetes.fixtures import NewNamespace
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.peers.test_peers import endpoints
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue, redrive
from tests.operator.test_uninstall import controlled, of_the_release, uninstall
from tests.servers import eventually


def two(new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen) -> tuple[OperatorProgram, Seen]:
    """Start an operator for each of two namespaces; return the first one, and the second namespace."""
    other = Seen(seen.cluster, new_namespace())
    first = new_operator(sweep_s=1).ready()
    new_operator(namespaces=other.namespace, sweep_s=1).ready()
    return first, other


def test_retained_queue_can_be_adopted(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    """Check that a retained queue can be adopted with its dead letters."""
    _, other = two(new_operator, new_namespace, seen)
    seen.declared(queue("mover"), queue("stays"))
    other.apply(queue("mover"), redrive("foreign", "stays"))
    found = other.becomes("queue", "mover", "False", "Conflict")
    assert "if that operator no longer exists, run penstock queue release mover" in found["message"]
    other.becomes("redrive", "foreign", "False", "Failed")
    keeper.put("mover", b"one")
    keeper.kill("stays", 3)
    for name in ("mover", "stays"):
        seen.delete("queue", name)
    other.becomes("queue", "mover", "True", "Declared")
    assert keeper.owner("mover") == f"kubernetes {other.namespace}/mover"
    assert keeper.take("mover") == [b"one"]
    eventually(lambda: keeper.owner("stays") == f"released kubernetes {seen.namespace}/stays")
    other.apply(redrive("own", "stays"))
    other.becomes("redrive", "own", "True", "Complete")


def test_queues_deleted_while_the_operator_was_down_are_released(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    """Check that queues are released whose resource was deleted while the operator was down, and no others."""
    first = new_operator().ready()
    seen.declared(queue("gone"), queue("there"), queue("other", queueName="before"))
    keeper.declare("far", owner="kubernetes elsewhere/far")
    first.kill()
    seen.delete("queue", "gone")
    seen.delete("queue", "other")
    seen.apply(queue("other", queueName="since"))
    second = new_operator().ready()
    seen.becomes("queue", "other", "True", "Declared")
    for name, resource in (("gone", "gone"), ("before", "other")):
        owner = f"released kubernetes {seen.namespace}/{resource}"
        eventually(lambda name=name, owner=owner: keeper.owner(name) == owner)
    assert keeper.owner("there") == f"kubernetes {seen.namespace}/there"
    assert keeper.owner("since") == f"kubernetes {seen.namespace}/other"
    assert keeper.owner("far") == "kubernetes elsewhere/far"
    assert {reported["queue"] for reported in second.events("queue_released")} == {"gone", "before"}
    seen.declared(queue("gone"))
    assert keeper.owner("gone") == f"kubernetes {seen.namespace}/gone"


def test_uninstalled_release_releases_its_queues(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    first, other = two(new_operator, new_namespace, seen)
    seen.apply(of_the_release(seen, "own", "Retain"), queue("orders", deletionPolicy="Delete"), peer("shop"))
    for kind, name in (("queue", "own"), ("queue", "orders"), ("peer", "shop")):
        seen.becomes(kind, name, "True", "Declared")
    keeper.put("orders", b"one")
    seen.apply(endpoints("found", "text-link", 7172, "10.1.0.1"))
    eventually(lambda: f"found.{seen.namespace}.text" in keeper.peers())
    theirs = f"discovered {seen.namespace}/another"
    keeper.apply_peer("theirs.far.text", theirs, protocol="text", addresses=["10.1.0.1:7172"])
    keeper.declare("far", owner="kubernetes elsewhere/far")
    other.apply(queue("orders"), queue("own"), peer("shop", "rqp-mca", "10.0.0.9"))
    for kind, name in (("queue", "own"), ("queue", "orders"), ("peer", "shop")):
        other.becomes(kind, name, "False", "Conflict")
    with controlled(first, seen):
        uninstall(first, seen)
    for kind, name in (("queue", "own"), ("queue", "orders"), ("peer", "shop")):
        other.becomes(kind, name, "True", "Declared")
    assert keeper.take("orders") == [b"one"]
    assert keeper.peers()["shop"] == (f"kubernetes {other.namespace}/shop", ("10.0.0.9",))
    assert set(keeper.peers()) == {"shop", "theirs.far.text"}
    assert keeper.owner("far") == "kubernetes elsewhere/far"
