"""A release on a node from installation to removal, under load and with failing pods (docs/kubernetes.md).

The tests of this file share one release and run in order.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.bench import Command
from tests.e2e.console import through_the_console
from tests.e2e.diagnosis import diagnosis
from tests.e2e.disturbing import (
    evict,
    evicted,
    is_another,
    kill,
    number_ready,
    processes,
    store_pod,
    was_killed,
)
from tests.e2e.documents import Typist, certificate
from tests.e2e.images import Images
from tests.e2e.node.kubelet import NAME as NODE
from tests.e2e.node.node import Node
from tests.e2e.outside import start_store
from tests.e2e.peering import (
    apart,
    neighbour,
    over_links,
    over_rqp,
    over_the_ring,
    send,
    sent_and_taken,
    taken,
)
from tests.e2e.release import EDGES, FULL, NAME, PEERS, QUEUES, Release, is_ready
from tests.e2e.released import definitions, released
from tests.e2e.runbooks import seen
from tests.e2e.scripted import LOADED, PLACES, check_load, load, run_script
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.operator.resource_documents import peer, queue
from tests.servers import eventually
from tests.stores import chance

__all__ = ["chance", "definitions"]

DELETING_S = 20.0
FEWEST_KILLED = 4  # in that time, even on a busy machine
FOLLOW_S = 60.0  # usually 2 s, but a failed peer is retried only later
NAMESPACE_S = 120
# the Secret of an outside store, as in docs/chart.md; here it refers to the release's own store
OUTSIDE_SECRET = f"""\
password=$(kubectl get secret {FULL}-redis -o go-template='{{{{index .data "admin-password" | base64decode}}}}')
kubectl create secret generic penstock-store --from-literal=admin-url="redis://admin:$password@{FULL}-redis:6379/0"
"""


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, definitions: None) -> Iterator[Release]:
    """Yield a release to be installed by the commands of README.md and upgraded by the tests."""
    with released(cluster, images) as found:
        yield found


@pytest.fixture(scope="module")
def typist(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    return Typist(release, tmp_path_factory.mktemp("pages"))


def test_the_readme_installs_a_release_and_sends_a_message(release: Release, typist: Typist) -> None:
    with step("README.md: helm install, every pod ready"):
        typist.section("README.md", "## On Kubernetes", "helm install", "helm install")
    pods = release.pods()
    assert all(is_ready(pod) for pod in pods)
    assert len(pods) == 2 * len(EDGES) + 2  # plus the operator and Redis
    with step("README.md: helm test, a Queue, a message"):
        typist.section("README.md", "## On Kubernetes", "helm test", "kubectl exec")
    assert taken(release, "invoices") == "three barrels"
    release.kubectl("delete", QUEUES, "invoices", "--timeout=20s")


def test_the_page_of_queues_peers_and_redrives(release: Release, typist: Typist) -> None:
    page = "docs/kubernetes.md"
    with step(page):
        typist.section(page, "## Create a Queue")
        typist.section(page, "### Deletion")
        release.apply(peer("shop"))
        release.wait_ready(PEERS)
        typist.section(page, "### Several operators on one store")
        typist.section(page, "## Redrive")
    release.kubectl("delete", f"{QUEUES},{PEERS},redrives.penstock.dev", "--all", "--timeout=20s")


def test_the_page_of_the_chart_on_an_installed_release(release: Release, typist: Typist) -> None:
    """Check that the page's upgrades keep values of the installation, such as the images for the next tests."""
    page = "docs/chart.md"
    typist.section(page, "## Install", "kubectl label")
    typist.section(page, "## Quotas, meshes, autoscalers")
    typist.section(page, "## Monitoring")
    typist.type(Command(OUTSIDE_SECRET, ""))
    with step(f"{page}: commands in a cluster"):
        typist.section(page, "## Commands in a cluster")
    with step(f"{page}: the console"):
        typist.section(page, "## Console")
        release.kubectl("rollout", "status", f"deployment/{FULL}-console", "--timeout=90s")


def test_commands_in_the_notes_work(release: Release, typist: Typist) -> None:
    """Check that the commands in the NOTES work; `helm test` with its check of the console is one of them."""
    with step("NOTES"):
        output = "".join(map(typist.type, typist.notes()))
    assert "queue.penstock.dev/orders condition met" in output
    assert output.count("sent and received") == len(EDGES)
    assert output.count("console at ") == 1, output


def test_queues_and_peers_become_ready(release: Release) -> None:
    orders = queue("orders", bindings={"rqpMca": {"queueId": 7}, "text": text("order")})
    asked = queue("asked", bindings={"rqpCast": {"key": 8}})
    loaded = queue(
        "load", bindings={"rqpMca": {"queueId": 9, "exclusive": False}, "text": {"subscribe": ["load"]}}
    )
    with step("Queues and Peers Ready"):
        release.apply(orders, asked, loaded, queue("gone", deletionPolicy="Delete"), peer("far"))
        release.wait_ready(f"{QUEUES},{PEERS}")
    release.kubectl("delete", QUEUES, "gone", "--timeout=20s")
    names = {each["name"] for each in listed(release)}
    assert {"orders", "asked", "load"} <= names
    assert "gone" not in names


def text(tag: str) -> dict[str, Any]:
    return {"subscribe": [f"{tag}.in"], "publish": f"{tag}.in.out"}


def listed(release: Release) -> list[dict[str, Any]]:
    lines = release.penstock("queue", "list", "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_message_through_every_edge_comes_out_through_another(release: Release) -> None:
    output = run_script(release, "cross.py", "orders", "order.in", *PLACES.values())
    assert output.count("well") == 6, output


def test_read_only_runbook_commands_work(release: Release) -> None:
    """Check that read-only commands of docs/runbooks work on a release (tests/docs/runbook_commands.py)."""
    there = {pod["metadata"]["name"] for pod in release.pods()}
    with step("read-only runbook commands"):
        outputs = seen(release, "orders")
    (pods,) = [text for words, text in outputs.items() if words.endswith(" -o wide")]
    assert there <= set(pods.split()), pods
    (queues,) = [text for words, text in outputs.items() if words.endswith(" -- penstock queue list")]
    assert "orders" in queues


def test_console_messages_reach_edges_and_consumers_are_listed(
    release: Release,
) -> None:
    with step("the console asked"):
        found = through_the_console(release, "orders")
    assert {"orders", "asked", "load"} <= set(found["names"])
    assert (found["stored"], found["taken"], found["is_seen"]) == (1, "by the console", True)
    assert (found["has_page"], found["stranger"]) == (True, 401)
    assert found["edges"] == 2 * len(EDGES)


def test_its_nodes_are_one_ring(release: Release) -> None:
    with step("a ring of 2"):
        release.wait_one_ring(2)


def test_diagnosis_contains_the_rings(release: Release, cluster: Cluster) -> None:
    """Check that a diagnosis has the ring status of each pod, because a split ring leaves all pods ready."""
    texts = diagnosis(cluster)
    for pod in release.pods("ring"):
        assert f"{pod['metadata']['name']}, penstock ring status:\ngroup 1: a ring of 2" in texts


def test_edges_follow_queues_and_peers_in_the_same_processes(release: Release) -> None:
    """Check that edges apply changed resources without a restart (docs/kubernetes.md)."""
    before = processes(release)
    release.apply(
        queue("moving", bindings={"text": {"subscribe": ["before"]}}),
        peer("self", "rqp-mca", "127.0.0.1:1"),  # no listener there
        queue("to-self", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["self"]}),
    )
    release.wait_ready(f"{QUEUES},{PEERS}")
    release.penstock("put", "to-self", "by the address")
    with step("other bindings of a Queue count"):
        release.apply(queue("moving", bindings={"text": {"subscribe": ["after"]}}))
        eventually(lambda: sent_and_taken(release, "after", "moving"), FOLLOW_S)
    send(release, "before", "not here")
    assert taken(release, "orders") == ""
    with step("another address of a Peer counts"):
        release.apply(peer("self", "rqp-mca", f"{FULL}-rqp-peers"))
        eventually(lambda: taken(release, "orders") == "by the address", FOLLOW_S)
    assert taken(release, "moving") == ""
    with step("a third pod is in .rqprc"):
        release.scale("rqp", 3)
        eventually(lambda: len(release.rqprc()) == 3, FOLLOW_S)
    assert before <= processes(release)
    release.kubectl("delete", f"{QUEUES}/moving", f"{QUEUES}/to-self", f"{PEERS}/self", "--timeout=20s")


def test_another_release_is_reached_over_rqp_links_and_the_ring(
    release: Release, cluster: Cluster, images: Images, tmp_path: Path
) -> None:
    """Check that messages pass between releases connected by Peers and by discovery.

    The other release has an outside store (docs/chart.md). It is deleted with its namespace, where a Queue still has a
    finalizer (docs/chart.md, Uninstall).
    """
    with released(cluster, images) as there:
        start_store(there, "store", tmp_path)
        with step("docs/chart.md: a store outside, every pod ready"):
            Typist(there, tmp_path, neighbour(release)).section(
                "docs/chart.md", "## The store", last="helm install"
            )
        over_rqp(release, there)
        over_links(release, there)
        over_the_ring(release, there)
        there.apply(queue("deleted", deletionPolicy="Delete"))
        there.wait_ready(QUEUES)
        with step("kubectl delete namespace"):
            cluster.kubectl("delete", "namespace", there.namespace, f"--timeout={NAMESPACE_S}s")
    apart(release)


def test_a_tenant_installs_a_release(
    release: Release, cluster: Cluster, images: Images, tmp_path: Path
) -> None:
    """Check that a tenant can install a release, with definitions and aggregated roles of the other release."""
    few = {"edges": {edge: {"enabled": False} for edge in EDGES if edge != "tmq"}}
    with released(cluster, images) as there:
        typist = Typist(there, tmp_path, few)
        typist.become_tenant()
        with step("docs/chart.md: a tenant's release, every pod ready"):
            typist.section("docs/chart.md", "## Namespaces and rights")
        (tmp_path / "queue.json").write_text(json.dumps(queue("orders")))
        typist.type(Command("kubectl apply --filename queue.json", ""))
        there.wait_ready(QUEUES)
        typist.type(Command(f"helm uninstall {NAME} --wait", ""))


def test_failed_installation_gives_the_reason(release: Release, cluster: Cluster, images: Images) -> None:
    """Check that a failed installation raises the reason why pods are not ready, as they are gone afterwards."""
    off = {edge: {"enabled": False} for edge in EDGES if edge != "tmq"}
    nowhere = {"repository": "localhost/missing", "tag": "1", "pullPolicy": "Never"}
    with pytest.raises(CommandFailed) as failure, released(cluster, images) as there:
        there.install(timeout="10s", edges=off, edgeDefaults={"image": nowhere})
    (note,) = failure.value.__notes__
    assert f"{FULL}-tmq" in note
    assert "ErrImageNeverPull" in note


def test_an_upgrade_under_load_loses_nothing(release: Release) -> None:
    """Check that an upgrade loses no message and refuses no connection (docs/chart.md, Upgrade)."""
    with load(release, "load", *LOADED) as results:
        release.upgrade(release.images.next_tag, replicas=3)
        eventually(lambda: len(release.pods()) == 3 * len(EDGES) + 3, 90)
    check_load(results, pause_s=60, breaks=4, is_in_order=True)  # one, or one for each pod that ends
    for component in (*EDGES, "operator", "console"):
        images = {pod["spec"]["containers"][0]["image"] for pod in release.pods(component)}
        target = "edge" if component in EDGES else component
        assert images == {release.images.of(target, release.images.next_tag)}, component
    release.wait_ready(f"{QUEUES},{PEERS}")
    release.wait_one_ring(3)


def test_pods_killed_and_deleted_at_random_under_load_lose_nothing(
    release: Release, own_node: Node | None, chance: random.Random
) -> None:
    with load(release, "load", *LOADED) as results:
        end, gone = time.monotonic() + DELETING_S, 0
        while time.monotonic() < end:
            others = (each for each in release.pods() if "redis" not in each["metadata"]["name"])
            pod = chance.choice([each for each in others if is_ready(each)])
            if gone % 2:
                release.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
            elif not kill(release, own_node, pod):
                continue  # already killed a moment ago
            gone += 1
            eventually(lambda: sum(map(is_ready, release.pods())) >= 10, 90)
        print(f"{gone} pods were killed or deleted")
    assert gone >= FEWEST_KILLED
    check_load(results, pause_s=30, breaks=20)
    with step("every pod ready after that"):
        eventually(lambda: all(map(is_ready, release.pods())), 90)
    release.wait_one_ring(3)


def test_the_store_killed_and_its_pod_deleted_under_load_lose_nothing(
    release: Release, own_node: Node | None
) -> None:
    with load(release, "load", *LOADED) as results:
        if own_node:
            with step("the store killed and ready again"):
                assert kill(release, own_node, store_pod(release))
                eventually(lambda: was_killed(store_pod(release)), 60)
        before = store_pod(release)
        with step("the store's pod deleted and ready again"):
            release.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
            eventually(lambda: is_another(release, before), 90)
        eventually(lambda: all(map(is_ready, release.pods())), 90)
    check_load(results, pause_s=40, breaks=40)
    release.wait_ready(f"{QUEUES},{PEERS}")


def test_evictions_under_load_honour_the_budgets_and_lose_nothing(release: Release) -> None:
    """Check that evictions, as by `kubectl drain`, take one pod of an edge at a time and lose no message."""
    names = {edge: sorted(pod["metadata"]["name"] for pod in release.pods(edge)) for edge in EDGES}
    with load(release, "load", *LOADED) as results:
        for first, second, *_ in names.values():
            evict(release, first)
            with pytest.raises(CommandFailed, match="violate the pod's disruption budget"):
                evict(release, second)
        with step("an evicted pod of each edge replaced"):
            eventually(lambda: all(number_ready(release, edge) == len(names[edge]) for edge in EDGES), 90)
        for _, second, *_ in names.values():
            eventually(lambda: evicted(release, second), 30)  # noqa: B023
        eventually(lambda: all(number_ready(release, edge) == len(names[edge]) for edge in EDGES), 90)
    check_load(results, pause_s=60, breaks=4, is_in_order=True)


def test_the_only_node_is_drained_and_comes_back(release: Release, node: Node) -> None:
    """Check that budgets do not block a drain of the only node for ever (docs/chart.md, "Draining nodes")."""
    release.penstock("put", "orders", "before the drain")
    try:
        with step("kubectl drain"):
            # --force: the pod of `helm test` has no controller
            flags = ("--delete-emptydir-data", "--ignore-daemonsets", "--force", "--timeout=150s")
            node.cluster.kubectl("drain", NODE, *flags)
        assert not any(map(is_ready, release.pods()))
    finally:
        node.cluster.kubectl("uncordon", NODE)
    with step("every pod ready after the drain"):
        eventually(lambda: all(map(is_ready, release.pods())), 120)
    assert release.penstock("get", "orders") == "before the drain"


def test_upgrade_commands_of_the_pages_keep_values(release: Release, typist: Typist, tmp_path: Path) -> None:
    for name, content in certificate(tmp_path).items():
        typist.write(name, content)
    typist.section("docs/chart.md", "## Upgrade")
    typist.section("docs/chart.md", "## TLS")
    with step("edges with TLS ready"):
        for edge in ("tmq", "pubsub"):
            release.kubectl("rollout", "status", f"deployment/{FULL}-{edge}", "--timeout=120s")
    assert len(release.pods("tmq")) == 3
    with step("helm test, by TLS"):
        assert f"tmq at tls://{FULL}-tmq:6161: sent and received" in release.test()


def test_uninstall_hangs_nowhere_and_retained_messages_are_there_again(
    release: Release, typist: Typist
) -> None:
    """Check that messages survive an uninstall and a new installation by GitOps on the kept volume (docs/chart.md)."""
    page = "docs/chart.md"
    release.apply(queue("kept"), queue("deleted", deletionPolicy="Delete"))
    release.wait_ready(QUEUES)
    for name in ("kept", "deleted"):
        release.penstock("put", name, f"in {name}")
    with step(f"{page}: uninstall, every pod gone"):
        typist.section(page, "## Uninstall")
        release.wait_gone()
    release.kubectl("delete", QUEUES, "deleted", "--timeout=20s")  # works without an operator
    release.kubectl("delete", QUEUES, "kept", "--timeout=20s")
    with step(f"{page}: GitOps, every pod ready"):
        typist.section(page, "## GitOps", last="kubectl apply")
        eventually(lambda: len(release.pods()) > 2 * len(EDGES) and all(map(is_ready, release.pods())), 120)
    assert release.cluster.items("jobs", release.namespace) == []
    release.apply(queue("kept"))
    release.wait_ready(QUEUES)
    for name in ("kept", "deleted"):  # `Delete` takes effect only if an operator sees the deletion
        assert release.penstock("get", name) == f"in {name}"
    typist.section(page, "## GitOps", "kubectl delete")
    assert release.kubectl("get", QUEUES, "-o", "name") == ""
    with step("everything of GitOps deleted"):
        typist.type(Command("kubectl delete --recursive --filename manifests --timeout=60s", ""))
