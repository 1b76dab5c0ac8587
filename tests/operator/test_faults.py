"""What breaks around the operator, and what it does then (docs/kubernetes.md, "When something is away")."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.fixtures import NewNamespace
from tests.operator.conftest import NewOperator
from tests.operator.documents import Seen, peer, queue
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.servers import Server, eventually
from tests.stores import chance

__all__ = ["chance"]

NAMES = [f"q{number}" for number in range(12)]


def test_a_store_that_is_away_and_comes_back(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    seen.apply(queue("orders"))
    seen.becomes("queue", "orders", "True", "Declared")
    store.kill9()
    found = seen.becomes("queue", "orders", "Unknown", "StoreUnavailable")
    assert "the store cannot be used now" in found["message"]
    assert operator.page("readyz")[0] == 503
    assert operator.page("healthz")[0] == 200  # a restart would not help
    seen.apply(queue("later"))
    seen.becomes("queue", "later", "Unknown", "StoreUnavailable")
    store.start()
    for name in ("orders", "later"):
        seen.becomes("queue", name, "True", "Declared")
    assert keeper.owner("later") == f"kubernetes {seen.namespace}/later"
    assert operator.page("readyz")[0] == 200
    assert seen.events("orders") == ["Declared"]  # the log tells of the store, once
    assert len(operator.events("store_down")) == 1


def test_a_domain_that_lost_its_data_alone(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """As when one shard of a Cluster came back empty: it is not taken for an empty queue."""
    first = new_operator(sweep_s=1).ready()
    seen.apply(queue("orders", domain="other"))
    seen.becomes("queue", "orders", "True", "Declared")
    keeper.lose_domain("other")
    found = seen.becomes("queue", "orders", "False", "DatasetLost")
    assert found["message"].startswith("domain 'other' is empty: restore it, or accept the loss")
    assert first.page("readyz")[0] == 503
    first.kill()
    second = new_operator(sweep_s=1)
    eventually(lambda: second.events("store_down"))
    seen.becomes("queue", "orders", "False", "DatasetLost")
    second.kill()
    new_operator(sweep_s=1, accept_loss="true").ready()
    seen.becomes("queue", "orders", "True", "Declared")


def test_an_api_server_that_is_restarted(
    api_server: ApiServer, operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Every watch is cut, and what changes meanwhile is seen."""
    seen.apply(queue("orders"), queue("gone", deletionPolicy="Delete"))
    for name in ("orders", "gone"):
        seen.becomes("queue", name, "True", "Declared")
    api_server.restart()
    seen.apply(queue("orders", maxLength=7), queue("new"))
    seen.delete("queue", "gone", "--timeout=30s")
    seen.becomes("queue", "orders", "True", "Declared", 60)
    seen.becomes("queue", "new", "True", "Declared", 60)
    kept = keeper.find("orders")
    assert kept is not None
    assert kept.spec.max_length == 7
    assert keeper.find("gone") is None


def test_nothing_is_taken_for_gone_that_was_not_listed(
    api_server: ApiServer, new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    """An API server that is away when the operator starts: what it declared before stays in the store."""
    first = new_operator().ready()
    seen.apply(peer("shop"))
    seen.becomes("peer", "shop", "True", "Declared")
    first.kill()
    api_server.daemon.end()
    try:
        second = new_operator()
        eventually(lambda: second.metric("penstock_operator_sweeps_total", result="failed") >= 3, 60)
        assert second.page("readyz")[0] == 503
        assert set(keeper.peers()) == {"shop"}
    finally:
        api_server.restart()
    second.ready()
    assert set(keeper.peers()) == {"shop"}


def test_a_namespace_without_rights_holds_up_no_other(
    api_server: ApiServer,
    new_operator: NewOperator,
    new_namespace: NewNamespace,
    seen: Seen,
    keeper: Keeper,
) -> None:
    other = Seen(seen.cluster, new_namespace())
    keeper.apply_peer(
        "theirs", f"kubernetes {other.namespace}/theirs", protocol="rqp-mca", addresses=["10.0.0.1"]
    )
    keeper.declare("old", owner=f"kubernetes {other.namespace}/old")
    user = api_server.as_user("operator")
    seen.apply(*rights("operator"))
    eventually(lambda: user.may("patch", "queues.penstock.dev/status", seen.namespace))
    running = new_operator(cluster=user, namespaces=f"{seen.namespace},{other.namespace}", sweep_s=1)
    seen.apply(queue("orders"), queue("old"))
    seen.becomes("queue", "orders", "True", "Declared")
    found = seen.becomes("queue", "old", "False", "Conflict")
    assert "which another operator sees to" in found["message"]
    assert "theirs" in keeper.peers()
    status, why = running.page("readyz")
    assert status == 503
    assert f"queues of {other.namespace} cannot be listed" in why
    other.apply(*rights("operator"))
    running.ready()
    eventually(lambda: "theirs" not in keeper.peers())
    seen.becomes("queue", "old", "True", "Declared")


def rights(user: str, kind: str = "User") -> list[dict[str, Any]]:
    """A Role and its binding, as the chart makes them for the operator."""
    rbac = "rbac.authorization.k8s.io"
    kinds = ["queues", "peers", "redrives"]
    rules = [
        {"apiGroups": ["penstock.dev"], "resources": kinds, "verbs": ["get", "list", "watch", "patch"]},
        {
            "apiGroups": ["penstock.dev"],
            "resources": [f"{kind}/status" for kind in kinds],
            "verbs": ["patch"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["get", "list", "watch"],
        },
    ]
    made = {"apiVersion": f"{rbac}/v1", "metadata": {"name": user}}
    role = {"apiGroup": rbac, "kind": "Role", "name": user}
    subject = {"apiGroup": rbac if kind == "User" else "", "kind": kind, "name": user}
    return [
        {**made, "kind": "Role", "rules": rules},
        {**made, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
    ]


def test_a_copy_with_the_notes_of_another_is_seen_at_once(operator: OperatorProgram, seen: Seen) -> None:
    """As a backup restores it, with what kopf had written there."""
    seen.apply(queue("orders"))
    seen.becomes("queue", "orders", "True", "Declared")

    def notes() -> dict[str, str]:
        found: dict[str, str] = seen.get("queue", "orders")["metadata"].get("annotations", {})
        return {name: text for name, text in found.items() if name.startswith("penstock.dev/")}

    eventually(notes)
    document = queue("copy")
    seen.apply({**document, "metadata": {**document["metadata"], "annotations": notes()}})
    seen.becomes("queue", "copy", "True", "Declared", 5)


def test_it_waits_for_its_definitions(
    new_operator: NewOperator, api_server: ApiServer, seen: Seen, store: Server
) -> None:
    """Rights, definitions and the API server may come later than the operator."""
    user = api_server.as_user("nobody")
    started = new_operator(cluster=user)
    eventually(lambda: started.events("list_failed"))
    assert started.page("readyz")[0] == 503
    assert started.process is not None
    assert started.process.poll() is None


@pytest.mark.parametrize("kills", [6])
def test_killed_at_random(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, chance: random.Random, kills: int
) -> None:
    """Whatever was done when it was killed, the next one finishes it."""
    wanted: dict[str, int] = {}
    running = new_operator()
    for number in range(kills):
        for name in chance.sample(NAMES, 4):
            if name in wanted and chance.random() < 0.3:
                seen.delete("queue", name, "--wait=false")
                del wanted[name]
            elif not has(seen, name) or name in wanted:
                wanted[name] = number + 1
                seen.apply(queue(name, maxLength=number + 1, deletionPolicy="Delete"))
        looked = partial(running.metric, "penstock_operator_looks_total")
        eventually(lambda looked=looked: looked() >= chance.randrange(1, 6))
        running.kill()
        running = new_operator()
    for name, length in wanted.items():
        seen.becomes("queue", name, "True", "Declared", 60)
        kept = keeper.find(name)
        assert kept is not None
        assert kept.spec.max_length == length
    for name in set(NAMES) - set(wanted):
        eventually(lambda name=name: not has(seen, name) and keeper.find(name) is None)


def has(seen: Seen, name: str) -> bool:
    return any(one["metadata"]["name"] == name for one in seen.cluster.items("queues", seen.namespace))


def test_it_ends_in_order(operator: OperatorProgram, seen: Seen) -> None:
    seen.apply(queue("orders"))
    seen.becomes("queue", "orders", "True", "Declared")
    assert operator.stop() == 0


def test_settings_that_cannot_be_used(new_operator: NewOperator, new_namespace: NewNamespace) -> None:
    for settings, says in (
        ({"namespaces": "*,shop"}, "PENSTOCK_OPERATOR_NAMESPACES: Value error, write * for all namespaces"),
        ({"namespaces": "team-*"}, "'team-*' is no name of a namespace: write them in full"),
        ({"sweep_s": "soon"}, "PENSTOCK_OPERATOR_SWEEP_S: Input should be a valid number"),
    ):
        program = new_operator(**settings)
        assert program.process is not None
        assert program.process.wait(20) == 2
        assert says in program.text()
