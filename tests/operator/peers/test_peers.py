"""Test Peer resources and discovery (docs/kubernetes.md, "Peer", "Discovery")."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.fixtures import NewNamespace
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.queues.test_conflicts import a_second_later
from tests.operator.resource_documents import Seen, peer
from tests.operator.rights import rights
from tests.operator.test_faults import writes
from tests.servers import Server, eventually

RECONCILIATIONS = "penstock_operator_looks_total"
QUICK_S = 2.0  # after a change of the store


def endpoints(
    service: str, port: str, number: int, *addresses: str, store: str = "other", **conditions: bool
) -> dict[str, Any]:
    labels = {
        "kubernetes.io/service-name": service,
        "penstock.dev/discover": "true",
        "penstock.dev/store": store,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{service}-{port}", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": conditions} for address in addresses],
        "ports": [{"name": port, "port": number, "protocol": "TCP"}],
    }


def test_peer_is_created_changed_and_deleted(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.apply(peer("shop", "rqp-mca", "10.0.0.7", window=5))
    seen.becomes("peer", "shop", "True", "Declared", QUICK_S)
    owner = f"kubernetes {seen.namespace}/shop"
    assert keeper.peers() == {"shop": (owner, ("10.0.0.7",))}
    seen.apply(peer("shop", "rqp-mca", "10.0.0.8:11312"))
    eventually(lambda: keeper.peers() == {"shop": (owner, ("10.0.0.8:11312",))}, QUICK_S)
    seen.delete("peer", "shop", 10)
    eventually(lambda: keeper.peers() == {}, QUICK_S)


def test_peer_deleted_while_the_operator_was_down(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    first = new_operator().ready()
    seen.declared(peer("shop"))
    first.kill()
    seen.delete("peer", "shop")
    new_operator().ready()
    eventually(lambda: keeper.peers() == {})


def test_oldest_peer_of_a_name_wins(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    other = Seen(seen.cluster, new_namespace())
    new_operator(namespaces=f"{seen.namespace},{other.namespace}").ready()
    seen.declared(peer("shop", "rqp-mca", "10.0.0.7"))
    a_second_later(seen, "peer", "shop")
    other.apply(peer("shop", "rqp-mca", "10.0.0.8"))
    found = other.becomes("peer", "shop", "False", "Conflict")
    assert found["message"] == (
        f"namespace '{seen.namespace}' has an older Peer of this name: rename or delete one of them"
    )
    seen.delete("peer", "shop")
    other.becomes("peer", "shop", "True", "Declared", QUICK_S)
    assert keeper.peers() == {"shop": (f"kubernetes {other.namespace}/shop", ("10.0.0.8",))}


def test_peer_of_another_operator(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    """Check that neither of two releases on one store takes over the other's peers."""
    other = Seen(seen.cluster, new_namespace())
    first = new_operator(sweep_s=1).ready()
    second = new_operator(namespaces=other.namespace, sweep_s=1, rqprc_configmap="machines").ready()
    seen.declared(peer("shop", "rqp-cast", "10.0.0.7"))
    other.apply(peer("shop", "rqp-cast", "10.0.0.8"), peer("last", "rqp-cast", "10.0.0.9"))
    found = other.becomes("peer", "shop", "False", "Conflict")
    assert f"belongs to a Peer in namespace '{seen.namespace}', which another operator" in found["message"]
    other.becomes("peer", "last", "True", "Declared")
    for one in (first, second):  # after each has reconciled everything
        before = one.metric(RECONCILIATIONS, kind="peers", result="done")
        eventually(
            lambda one=one, before=before: one.metric(RECONCILIATIONS, kind="peers", result="done") > before
        )
    assert keeper.peers()["shop"] == (f"kubernetes {seen.namespace}/shop", ("10.0.0.7",))
    assert seen.ready("peer", "shop") == ("True", "Declared")
    assert other.get("configmap", "machines")["data"]["rqprc"] == "10.0.0.9\n"
    seen.delete("peer", "shop")
    other.becomes("peer", "shop", "True", "Declared")
    assert keeper.peers()["shop"] == (f"kubernetes {other.namespace}/shop", ("10.0.0.8",))


def test_peer_adopts_a_declared_one(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a Peer adopts a declared peer, but none of another name or operator."""
    for name, owner in {"shop": "cli", "mine": "cli", "far": "kubernetes elsewhere/far"}.items():
        keeper.apply_peer(name, owner, protocol="rqp-mca", addresses=["10.0.0.1"])
    seen.declared(peer("shop", "rqp-mca", "10.0.0.7"))
    assert keeper.peers()["shop"] == (f"kubernetes {seen.namespace}/shop", ("10.0.0.7",))
    assert [(adopted["peer"], adopted["owner"]) for adopted in operator.events("peer_adopted")] == [
        ("shop", "cli")
    ]
    seen.delete("peer", "shop")
    eventually(lambda: set(keeper.peers()) == {"mine", "far"}, QUICK_S)


def test_edges_of_another_store_become_peers(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.apply(endpoints("depot-rqp", "rqp-mca", 11311, "10.1.0.2", "10.1.0.1", ready=True))
    name = f"depot-rqp.{seen.namespace}.rqp-mca"
    found = {name: (f"discovered {seen.namespace}/penstock", ("10.1.0.1:11311", "10.1.0.2:11311"))}
    eventually(lambda: keeper.peers() == found, QUICK_S)
    seen.apply(endpoints("depot-rqp", "rqp-mca", 11311, "10.1.0.3", ready=True))
    eventually(lambda: keeper.peers()[name][1] == ("10.1.0.3:11311",), QUICK_S)
    seen.apply(endpoints("depot-rqp", "rqp-mca", 11311, "10.1.0.3", ready=False))
    eventually(lambda: keeper.peers() == {}, QUICK_S)
    # of a release's edges only ring nodes discover each other
    seen.apply(endpoints("own-rqp", "rqp-mca", 11311, "10.1.0.3", store="penstock"))
    seen.apply(endpoints("own-ring", "ring-beacon", 8083, "10.1.0.1", store="penstock"))
    owner = f"discovered {seen.namespace}/penstock"
    nodes = {f"own-ring.{seen.namespace}.ring": (owner, ("10.1.0.1:8083",))}
    eventually(lambda: keeper.peers() == nodes, QUICK_S)


def test_discovered_peer_returns_after_the_overriding_one(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    name = f"depot.{seen.namespace}.text"
    seen.apply(endpoints("depot", "text-link", 7172, "10.1.0.1"))
    found = f"discovered {seen.namespace}/penstock"
    eventually(lambda: keeper.peers() == {name: (found, ("10.1.0.1:7172",))})
    seen.apply(peer(name, "text", "10.0.0.9:7172"))
    eventually(lambda: keeper.peers() == {name: (f"kubernetes {seen.namespace}/{name}", ("10.0.0.9:7172",))})
    seen.delete("peer", name)
    eventually(lambda: keeper.peers() == {name: (found, ("10.1.0.1:7172",))}, QUICK_S)
    seen.delete("endpointslice", "depot-text-link")
    eventually(lambda: keeper.peers() == {}, QUICK_S)


def test_peers_discovered_under_an_earlier_name_are_deleted(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    """Check that peers under an earlier name are deleted if no slice has them, except in unlisted namespaces."""
    former = f"discovered {seen.namespace}/former"
    far = new_namespace()
    for name in (f"gone.{seen.namespace}.text", f"there.{seen.namespace}.text", f"far.{far}.text"):
        keeper.apply_peer(name, former, protocol="text", addresses=["10.1.0.1:7172"])
    keeper.apply_peer("mine.too.text", "cli", protocol="text", addresses=["10.1.0.1:7172"])
    seen.apply(endpoints("there", "text-link", 7172, "10.1.0.1"))
    new_operator().ready()
    left = {f"there.{seen.namespace}.text", f"far.{far}.text", "mine.too.text"}
    eventually(lambda: set(keeper.peers()) == left)
    seen.delete("endpointslice", "there-text-link")
    left.remove(f"there.{seen.namespace}.text")
    eventually(lambda: set(keeper.peers()) == left, QUICK_S)


def test_unlisted_namespace_keeps_only_its_own_peers(
    new_operator: NewOperator, api_server: ApiServer, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    """Check that peers of a namespace that cannot be listed stay; outdated peers of other namespaces are removed."""
    yard, closed, dropped = (new_namespace() for _ in range(3))
    Seen(seen.cluster, yard).apply(*rights("developer"), endpoints("there", "text-link", 7172, "10.1.0.1"))
    seen.apply(*rights("developer"))
    names = [f"{service}.{yard}.text" for service in ("there", "gone")]
    names += [f"{service}.{namespace}.text" for service, namespace in (("kept", closed), ("old", dropped))]
    for name in names:
        keeper.apply_peer(
            name, f"discovered {seen.namespace}/penstock", protocol="text", addresses=["10.1.0.1:7172"]
        )
    operator = new_operator(
        cluster=api_server.as_user("developer"), discover_namespaces=f"{yard},{closed}"
    ).ready()
    eventually(lambda: set(keeper.peers()) == {f"there.{yard}.text", f"kept.{closed}.text"})
    (event,) = operator.events("neighbours_not_listed")
    assert f"endpointslices of {closed} cannot be listed" in event["message"]


def quiet_and_loud() -> list[dict[str, Any]]:
    """Return three slices, of which only the last one is labelled for discovery."""
    quiet, no, loud = (endpoints(name, "rqp-mca", 11311, "10.1.0.1") for name in ("quiet", "no", "loud"))
    del quiet["metadata"]["labels"]["penstock.dev/discover"]
    no["metadata"]["labels"]["penstock.dev/discover"] = "false"
    return [quiet, no, loud]


def test_services_without_the_label_are_ignored(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Check that Services without the label are ignored, also after it was removed."""
    seen.apply(*quiet_and_loud())
    eventually(lambda: set(keeper.peers()) == {f"loud.{seen.namespace}.rqp-mca"})
    unlabelled = {"metadata": {"labels": {"penstock.dev/discover": None}}}
    seen.cluster.patch("endpointslice", "loud-rqp-mca", unlabelled, seen.namespace)
    eventually(lambda: keeper.peers() == {}, QUICK_S)


def test_services_without_the_label_are_not_listed(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    seen.apply(*quiet_and_loud())
    operator = new_operator(sweep_s=1).ready()
    passes = partial(operator.metric, "penstock_operator_sweeps_total", result="done")
    before = passes()
    eventually(lambda: passes() >= before + 3)
    assert set(keeper.peers()) == {f"loud.{seen.namespace}.rqp-mca"}


def test_discovery_does_not_override_declared_peers(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    name = f"depot.{seen.namespace}.text"
    keeper.apply_peer(name, "cli", protocol="text", addresses=["10.0.0.9:7172"])
    seen.apply(endpoints("depot", "text-link", 7172, "10.1.0.1"))
    seen.apply(endpoints("last", "text-link", 7172, "10.1.0.2"))
    eventually(lambda: f"last.{seen.namespace}.text" in keeper.peers())
    assert keeper.peers()[name] == ("cli", ("10.0.0.9:7172",))
    seen.delete("endpointslice", "depot-text-link")
    seen.delete("endpointslice", "last-text-link")
    eventually(lambda: set(keeper.peers()) == {name})


def test_rqprc_is_maintained(new_operator: NewOperator, seen: Seen, store: Server) -> None:
    new_operator(rqprc_configmap="machines").ready()

    def text() -> str | None:
        found = {one["metadata"]["name"]: one for one in seen.cluster.items("configmaps", seen.namespace)}
        return found["machines"]["data"]["rqprc"] if "machines" in found else None

    eventually(lambda: text() == "")
    seen.apply(peer("depot", "rqp-cast", "10.0.0.8", "depot.example.org:11313"))
    seen.apply(endpoints("own", "rqp-cast", 11312, "10.1.0.1", store="penstock"))
    eventually(lambda: text() == "10.1.0.1:11312\n10.0.0.8\ndepot.example.org:11313\n", QUICK_S)
    seen.delete("configmap", "machines")
    seen.delete("peer", "depot")
    eventually(lambda: text() == "10.1.0.1:11312\n", QUICK_S)


def test_operators_with_the_same_discovery_do_not_compete(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Check that operators with the same discovery do not change each other's peers, which would notify all edges."""
    other = new_namespace()
    first = new_operator(namespaces=f"{seen.namespace},{other}", sweep_s=1).ready()
    seen.apply(endpoints("depot", "text-link", 7172, "10.1.0.1"))
    name = f"depot.{seen.namespace}.text"
    expected = {name: (f"discovered {seen.namespace}/penstock", ("10.1.0.1:7172",))}
    eventually(lambda: keeper.peers() == expected)
    second = new_operator(
        namespaces=f"{other},{seen.namespace}", sweep_s=1, rqprc_configmap="machines"
    ).ready()
    published = writes(store)["publish"]
    for one in (first, second, first, second):
        before = one.metric(RECONCILIATIONS, kind="peers", result="done")
        eventually(
            lambda one=one, before=before: one.metric(RECONCILIATIONS, kind="peers", result="done") > before
        )
    assert keeper.peers() == expected
    assert writes(store)["publish"] == published
    seen.apply(endpoints("depot", "text-link", 7172, "10.1.0.2"))  # either operator may see it first
    eventually(lambda: keeper.peers()[name][1] == ("10.1.0.2:7172",))
