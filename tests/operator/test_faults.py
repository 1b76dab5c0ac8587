"""Test the operator's reactions to faults (docs/kubernetes.md, "Failures")."""

from __future__ import annotations

import random
import re
import time
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from penstock_operator.kopf_handlers import LONGEST_BACKOFF_S, operator_settings

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.fixtures import NewNamespace
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.line import Line
from tests.operator.program import OperatorProgram
from tests.operator.queues.test_conflicts import a_second_later
from tests.operator.resource_documents import Seen, peer, queue
from tests.operator.rights import rights
from tests.servers import Server, eventually
from tests.stores import chance

__all__ = ["chance"]

KOPF_WAITS_S = 5.0  # at the end of the loop's tasks, unless it is cancelled
SWEEPS = "penstock_operator_sweeps_total"
NAMES = [f"q{number}" for number in range(12)]


def test_store_outage(operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server) -> None:
    """Check that resources that change during a store outage get an event, and unchanged ones do not."""
    numbered = {"bindings": {"rqpMca": {"queueId": 7}}}
    seen.declared(queue("orders", **numbered))
    a_second_later(seen, "queue", "orders")
    seen.declared(queue("late"))
    store.kill9()
    for name in ("orders", "late"):
        found = seen.becomes("queue", name, "Unknown", "StoreUnavailable")
        assert "the store cannot be used now" in found["message"]
    assert operator.page("readyz")[0] == 503
    assert operator.page("healthz")[0] == 200  # a restart would not help
    seen.apply(queue("late", **numbered), queue("new"))
    for name in ("late", "new"):
        seen.becomes("queue", name, "Unknown", "StoreUnavailable")
    store.start()
    seen.becomes("queue", "late", "False", "Conflict")
    for name in ("orders", "new"):
        seen.becomes("queue", name, "True", "Declared")
    assert keeper.owner("new") == f"kubernetes {seen.namespace}/new"
    assert operator.page("readyz")[0] == 200
    eventually(lambda: seen.events("late") == ["Declared", "Conflict"])
    eventually(lambda: seen.events("new") == ["Declared"])
    eventually(lambda: seen.events("orders") == ["Declared"])  # the log reports the store once
    assert len(operator.events("store_down")) == 1


def test_domain_that_lost_its_data(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Check that queues of a lost domain are not taken for empty, as when a Cluster's shard comes back empty."""
    first = new_operator(sweep_s=1).ready()
    seen.declared(queue("orders", domain="other"))
    keeper.lose_domain("other")
    found = seen.becomes("queue", "orders", "False", "DatasetLost")
    assert found["message"].startswith("domain 'other' is empty: restore its data, or accept the loss")
    assert first.page("readyz")[0] == 503
    written = writes(store)
    eventually(lambda: first.metric(SWEEPS, result="done") >= 4)
    first.kill()
    second = new_operator(sweep_s=1)
    eventually(lambda: second.events("domain_lost"))
    eventually(lambda: second.metric(SWEEPS, result="done") >= 4)
    assert writes(store) == written | {"publish": written["publish"] + 1}  # the start of the second one
    seen.becomes("queue", "orders", "False", "DatasetLost")
    second.kill()
    new_operator(sweep_s=1, accept_loss="true").ready()
    seen.becomes("queue", "orders", "True", "Declared")


def writes(store: Server) -> dict[str, int]:
    """Return how often functions were loaded, and all edges notified."""
    found = store.call("INFO", "commandstats").decode()
    return {
        name.partition("|")[0]: int(re.search(rf"cmdstat_{re.escape(name)}:calls=(\d+)", found)[1])  # type: ignore[index]
        for name in ("function|load", "publish")
    }


def test_lost_domain_does_not_block_others(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.declared(queue("orders"), queue("far", domain="other"))
    keeper.lose_domain("other")
    seen.becomes("queue", "far", "False", "DatasetLost")
    seen.apply(queue("orders", maxLength=5), queue("new"), queue("also", domain="other"), peer("shop"))
    for kind, name in (("queue", "orders"), ("queue", "new"), ("peer", "shop")):
        seen.becomes(kind, name, "True", "Declared")
    assert keeper.spec("orders").max_length == 5
    assert keeper.owner("new") == f"kubernetes {seen.namespace}/new"
    seen.becomes("queue", "also", "False", "DatasetLost")
    status, why = operator.page("readyz")
    assert (status, "domain 'other' is empty" in why) == (503, True)
    assert operator.page("healthz")[0] == 200
    assert operator.metric("penstock_operator_store_up") == 0


def test_queues_wait_for_the_first_pass_over_peers(new_operator: NewOperator, seen: Seen) -> None:
    """Check that queues do not report peers as missing before the first pass over peers, also after a restart."""
    queues = [f"q{number}" for number in range(10)]
    peers = [peer(f"peer{number}", "rqp-mca", f"10.0.1.{number}") for number in range(60)]
    remote = [{"protocol": "rqp-mca", "queueId": n, "peers": [f"peer{59 - n}"]} for n in range(10)]
    seen.apply(*peers, *(queue(name, remote=where) for name, where in zip(queues, remote, strict=True)))
    first = new_operator(sweep_s=3600).ready()
    for name in queues:
        seen.becomes("queue", name, "True", "Declared")
    results = [each["reason"] for each in seen.cluster.items("events", seen.namespace)]
    assert "UnknownPeer" not in results
    eventually(lambda: first.metric("penstock_operator_waiting") == 0)
    first.kill()
    second = new_operator(sweep_s=3600).ready()
    declared = {"kind": "queues", "reason": "Declared"}
    eventually(lambda: second.metric("penstock_operator_resources", **declared) == len(queues))
    eventually(lambda: second.metric("penstock_operator_waiting") == 0)
    assert second.metric("penstock_operator_status_patches_total") == 0


@pytest.mark.parametrize(
    ("kubeconfig", "text"),
    [
        ("", "there is neither a service account nor a kubeconfig"),
        ("none", "No such file or directory: 'none'"),
    ],
)
def test_missing_kubeconfig_is_reported(
    new_operator: NewOperator, tmp_path: Path, kubeconfig: str, text: str
) -> None:
    lost = Cluster(tmp_path, tmp_path)
    lost.environment["KUBECONFIG"] = kubeconfig
    program = new_operator(cluster=lost)
    assert program.ended() == 1
    assert text in program.text()


def test_api_server_restart(
    api_server: ApiServer, operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Check that changes during a restart of the API server, which cuts every watch, are noticed."""
    seen.declared(queue("orders"), queue("gone", deletionPolicy="Delete"))
    api_server.restart()
    seen.apply(queue("orders", maxLength=7), queue("new"))
    seen.delete("queue", "gone", 30)
    seen.becomes("queue", "orders", "True", "Declared", 60)
    seen.becomes("queue", "new", "True", "Declared", 60)
    assert keeper.spec("orders").max_length == 7
    assert keeper.find("gone") is None


def test_unlisted_resources_are_not_taken_for_deleted(
    api_server: ApiServer, line: Line, new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    """Check that declared queues and peers stay while the API server is down at the operator's start."""
    keeper.apply_peer("shop", f"kubernetes {seen.namespace}/shop", protocol="text", addresses=["10.0.0.7"])
    seen.apply(peer("shop", "text"))
    line.pull_out()
    second = new_operator(cluster=api_server.as_user(port=line.port))
    eventually(lambda: second.metric(SWEEPS, result="failed") >= 2)
    assert second.page("readyz")[0] == 503
    assert set(keeper.peers()) == {"shop"}
    line.plug_in()
    second.ready()
    assert set(keeper.peers()) == {"shop"}


def test_namespace_without_rights_does_not_block_others(
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
    assert "which another operator manages" in found["message"]
    assert "theirs" in keeper.peers()
    status, why = running.page("readyz")
    assert status == 503
    assert f"queues of {other.namespace} cannot be listed" in why
    eventually(lambda: "Request attempt #2 failed" in running.text())
    other.apply(queue("late", deletionPolicy="Delete"))
    other.apply(*rights("operator"))
    running.ready()
    eventually(lambda: "theirs" not in keeper.peers())
    seen.becomes("queue", "old", "True", "Declared")
    other.becomes("queue", "late", "True", "Declared")  # only a watch would cause the finalizer


def test_watches_are_retried_forever() -> None:
    """Check that watches are retried without end, while kopf would stop at the end of its list of pauses."""
    pauses = [*islice(operator_settings().networking.error_backoffs, 100)]
    assert pauses == sorted(pauses)
    assert (len(pauses), pauses[-1]) == (100, LONGEST_BACKOFF_S)


def test_copy_with_kopf_annotations_is_seen_at_once(operator: OperatorProgram, seen: Seen) -> None:
    """Check that a copy with kopf's annotations, as from a backup, is noticed at once."""
    seen.declared(queue("orders"))

    def notes() -> dict[str, str]:
        found: dict[str, str] = seen.get("queue", "orders")["metadata"].get("annotations", {})
        return {name: text for name, text in found.items() if name.startswith("penstock.dev/")}

    eventually(notes)
    document = queue("copy")
    seen.apply({**document, "metadata": {**document["metadata"], "annotations": notes()}})
    seen.becomes("queue", "copy", "True", "Declared", 5)


@pytest.mark.parametrize("kills", [6])
def test_killed_at_random(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, chance: random.Random, kills: int
) -> None:
    """Check that the next operator finishes the work of one that was killed at any time."""
    wanted: dict[str, int] = {}
    running = new_operator()
    for number in range(kills):
        for name in chance.sample(NAMES, 4):
            if name in wanted and chance.random() < 0.3:
                seen.delete("queue", name, patience_s=0)
                del wanted[name]
            elif not has(seen, name) or name in wanted:
                wanted[name] = number + 1
                seen.apply(queue(name, maxLength=number + 1, deletionPolicy="Delete"))
        reconciliations = partial(running.metric, "penstock_operator_looks_total")
        eventually(lambda reconciliations=reconciliations: reconciliations() >= chance.randrange(1, 6))
        running.kill()
        running = new_operator()
    for name, length in wanted.items():
        seen.becomes("queue", name, "True", "Declared", 60)
        assert keeper.spec(name).max_length == length
    for name in set(NAMES) - set(wanted):
        eventually(lambda name=name: not has(seen, name) and keeper.find(name) is None)


def has(seen: Seen, name: str) -> bool:
    return any(one["metadata"]["name"] == name for one in seen.cluster.items("queues", seen.namespace))


def test_operator_ends_in_order(operator: OperatorProgram, seen: Seen) -> None:
    seen.declared(queue("orders"))
    began = time.monotonic()
    assert operator.stop() == 0
    assert time.monotonic() - began < KOPF_WAITS_S
