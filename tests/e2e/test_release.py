"""A release on a node, from its installation to its end (docs/kubernetes.md): under load, and while pods go.

The tests of this file share one release, and are run in their order.
"""

from __future__ import annotations

import json
import random
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.images import Images
from tests.e2e.node.kubelet import NAME as NODE
from tests.e2e.node.node import Node
from tests.e2e.release import EDGES, FULL, Release, is_ready
from tests.e2e.scripted import PLACES, load, run_script
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.namespaces import RESTRICTED
from tests.operator.documents import peer, queue
from tests.servers import eventually
from tests.stores import chance

__all__ = ["chance"]

LOADED = EDGES  # each answers a message when it is safe
DELETING_S = 20.0


@contextmanager
def released(cluster: Cluster, images: Images) -> Iterator[Release]:
    """To be installed, in a namespace that admits only restricted pods; it goes however its test ended."""
    name = f"e2e-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": RESTRICTED}
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
    release = Release(cluster, name, images)
    try:
        eventually(lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-o", "name", "-n", name))
        yield release
    finally:
        release.remove()
        cluster.kubectl("delete", "namespace", name, "--timeout=120s")


@pytest.fixture(scope="module")
def definitions(cluster: Cluster) -> Iterator[None]:
    """An uninstall keeps them: on somebody's own cluster they stay only if they were there before."""
    before = names_of_definitions(cluster)
    yield
    if made := names_of_definitions(cluster) - before:
        cluster.kubectl("delete", *made, "--timeout=60s")


def names_of_definitions(cluster: Cluster) -> set[str]:
    lines = cluster.kubectl("get", "crds", "-o", "name").splitlines()
    return {line for line in lines if line.endswith(".penstock.dev")}


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, definitions: None) -> Iterator[Release]:
    """Every pod is ready."""
    with released(cluster, images) as release:
        release.install()
        yield release


def test_every_pod_is_ready(release: Release) -> None:
    pods = release.pods()
    assert all(is_ready(pod) for pod in pods)
    assert len(pods) == 2 * len(EDGES) + 2  # and the operator, and Redis


def test_queues_and_peers_become_ready(release: Release) -> None:
    orders = queue("orders", bindings={"rqpMca": {"queueId": 7}, "text": text("order")})
    asked = queue("asked", bindings={"rqpCast": {"key": 8}})
    loaded = queue("load", bindings={"rqpMca": {"queueId": 9}, "text": {"subscribe": ["load"]}})
    with step("Queues and Peers Ready"):
        release.apply(orders, asked, loaded, queue("gone", deletionPolicy="Delete"), peer("far"))
        release.wait_ready("queues,peers")
    release.kubectl("delete", "queue", "gone", "--timeout=20s")
    assert {each["name"] for each in listed(release)} == {"orders", "asked", "load"}


def text(tag: str) -> dict[str, Any]:
    return {"subscribe": [f"{tag}.in"], "publish": f"{tag}.in.out"}


def listed(release: Release) -> list[dict[str, Any]]:
    lines = release.penstock("queue", "list", "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_message_through_every_edge_comes_out_through_another(release: Release) -> None:
    told = run_script(release, "cross.py", "orders", "order.in", *PLACES.values())
    assert told.count("well") == 6, told


def test_helm_test(release: Release) -> None:
    assert release.test().count("sent and received") == len(EDGES)


def test_another_release_sends_over_rqp(release: Release, cluster: Cluster, images: Images) -> None:
    """A Peer, and transmission queues by both protocols of RQP, from pod to pod."""
    off = {name: {"enabled": False} for name in ("pubsub", "ring")}
    peers = f"{FULL}-rqp-peers.{release.namespace}.svc"
    with released(cluster, images) as there:
        there.install(crds={"enabled": False}, edges=off)
        there.apply(
            peer("mca", "rqp-mca", peers),
            peer("cast", "rqp-cast", peers),
            queue("by-mca", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["mca"]}),
            queue("by-cast", remote={"protocol": "rqp-cast", "key": 8, "peers": ["cast"]}),
        )
        there.wait_ready("queues,peers")
        for name, goal in (("by-mca", "orders"), ("by-cast", "asked")):
            with step(f"a message over {name}"):
                there.penstock("put", name, name)
                eventually(lambda: taken(release, goal) == name, 60)  # noqa: B023
        there.uninstall()


def taken(release: Release, name: str) -> str:
    try:
        return release.penstock("get", name)
    except CommandFailed:
        return ""


def check(told: dict[str, Any], pause_s: float, breaks: int) -> None:
    """Nothing that was acknowledged is missing; nobody waited for longer, nor lost more connections.

    Where nothing fails the pauses are those of a machine that starts a dozen pods at once.
    """
    print(told)
    assert told["missing_count"] == 0, str(told)
    assert all(told["acked"][edge] > 50 for edge in LOADED), str(told)
    assert max(told["longest_gap_s"].values()) < pause_s, str(told)
    assert max(told["breaks"].get(edge, 0) for edge in LOADED) <= breaks, str(told)


def test_an_upgrade_under_load_loses_nothing(release: Release) -> None:
    """A new pod is ready before an old one goes (docs/chart.md, Upgrade): nobody waits for one."""
    with load(release, "load", *LOADED) as told:
        release.upgrade(release.images.next_tag, replicas=3)
        eventually(lambda: len(release.pods()) == 3 * len(EDGES) + 2, 90)
    check(told, pause_s=20, breaks=4)  # one, or one more for each pod that goes
    for component in (*EDGES, "operator"):
        images = {pod["spec"]["containers"][0]["image"] for pod in release.pods(component)}
        target = "operator" if component == "operator" else "edge"
        assert images == {release.images.of(target, release.images.next_tag)}, component
    release.wait_ready("queues,peers")


def kill(release: Release, node: Node | None, pod: dict[str, Any]) -> None:
    """As the kernel kills for want of memory: nothing drains. On somebody's own cluster it is deleted by force."""
    if node is None:
        release.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    else:
        (status,) = pod["status"]["containerStatuses"]
        node.containers.kill(status["containerID"].rpartition("/")[2])


def was_killed(pod: dict[str, Any]) -> bool:
    (status,) = pod["status"]["containerStatuses"]
    ended = status["lastState"].get("terminated", {}) if status["ready"] else {}
    return bool(ended and ended["exitCode"] == 128 + signal.SIGKILL)


def test_pods_killed_and_deleted_at_random_under_load_lose_nothing(
    release: Release, own_node: Node | None, chance: random.Random
) -> None:
    with load(release, "load", *LOADED) as told:
        end, gone = time.monotonic() + DELETING_S, 0
        while time.monotonic() < end:
            others = (each for each in release.pods() if "redis" not in each["metadata"]["name"])
            pod = chance.choice([each for each in others if is_ready(each)])
            if gone % 2:
                release.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
            else:
                kill(release, own_node, pod)
            gone += 1
            eventually(lambda: sum(map(is_ready, release.pods())) >= 10, 90)
        print(f"{gone} pods were killed or deleted")
    check(told, pause_s=30, breaks=20)
    with step("every pod ready after that"):
        eventually(lambda: all(map(is_ready, release.pods())), 90)


def test_the_store_killed_and_its_pod_deleted_under_load_lose_nothing(
    release: Release, own_node: Node | None
) -> None:
    with load(release, "load", *LOADED) as told:
        if own_node:
            with step("the store killed and ready again"):
                kill(release, own_node, store_pod(release))
                eventually(lambda: was_killed(store_pod(release)), 60)
        before = store_pod(release)
        with step("the store's pod deleted and ready again"):
            release.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
            eventually(lambda: is_another(release, before), 90)
        eventually(lambda: all(map(is_ready, release.pods())), 90)
    check(told, pause_s=40, breaks=40)
    release.wait_ready("queues,peers")


def store_pod(release: Release) -> dict[str, Any]:
    """Raises ConnectionError while there is none."""
    for pod in release.pods("redis"):
        return pod
    raise ConnectionError("the store has no pod")


def is_another(release: Release, before: dict[str, Any]) -> bool:
    found = store_pod(release)
    return found["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(found)


def test_evictions_under_load_honour_the_budgets_and_lose_nothing(release: Release) -> None:
    """As `kubectl drain` asks: one pod of an edge at a time."""
    names = {edge: sorted(pod["metadata"]["name"] for pod in release.pods(edge)) for edge in EDGES}
    with load(release, "load", *LOADED) as told:
        for first, second, *_ in names.values():
            evict(release, first)
            with pytest.raises(CommandFailed, match="violate the pod's disruption budget"):
                evict(release, second)
        with step("an evicted pod of each edge replaced"):
            eventually(lambda: all(number_ready(release, edge) == len(names[edge]) for edge in EDGES), 90)
        for _, second, *_ in names.values():
            eventually(lambda: evicted(release, second), 30)  # noqa: B023
        eventually(lambda: all(number_ready(release, edge) == len(names[edge]) for edge in EDGES), 90)
    check(told, pause_s=20, breaks=4)


def number_ready(release: Release, edge: str) -> int:
    return sum(map(is_ready, release.pods(edge)))


def evict(release: Release, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{release.namespace}/pods/{name}/eviction"
    release.cluster.kubectl("create", "--raw", path, "--filename", "-", given=json.dumps(eviction))


def evicted(release: Release, name: str) -> bool:
    try:
        evict(release, name)
    except CommandFailed as refusal:
        if "disruption budget" not in refusal.said:
            raise
        return False
    return True


def test_the_only_node_is_drained_and_comes_back(release: Release, node: Node) -> None:
    """No budget holds a drain for ever, also where nothing can be replaced (docs/chart.md, Drained nodes)."""
    release.penstock("put", "orders", "before the drain")
    try:
        with step("kubectl drain"):
            # the pod of `helm test` is nobody's
            flags = ("--delete-emptydir-data", "--ignore-daemonsets", "--force", "--timeout=150s")
            node.cluster.kubectl("drain", NODE, *flags)
        assert not any(map(is_ready, release.pods()))
    finally:
        node.cluster.kubectl("uncordon", NODE)
    with step("every pod ready after the drain"):
        eventually(lambda: all(map(is_ready, release.pods())), 120)
    assert release.penstock("get", "orders") == "before the drain"


def test_uninstall_hangs_nowhere_and_retained_messages_are_there_again(release: Release) -> None:
    release.apply(queue("kept"), queue("deleted", deletionPolicy="Delete"))
    release.wait_ready("queues")
    for name in ("kept", "deleted"):
        release.penstock("put", name, f"in {name}")
    release.uninstall()
    release.kubectl("delete", "queue", "deleted", "--timeout=20s")  # no operator is there, and none is needed
    release.kubectl("delete", "queue", "kept", "--timeout=20s")
    release.install()
    release.apply(queue("kept"))
    release.wait_ready("queues")
    for name in ("kept", "deleted"):  # what `Delete` means is done by an operator that sees the Queue deleted
        assert release.penstock("get", name) == f"in {name}"
    release.uninstall()
