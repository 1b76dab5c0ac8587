"""A release on a node, from its installation to its end (docs/kubernetes.md): under load, and while pods go.

The tests of this file share one release, and are run in their order.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.images import Images
from tests.e2e.release import EDGES, FULL, Release, is_ready
from tests.e2e.scripted import PLACES, load, run_script
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.namespaces import RESTRICTED
from tests.operator.documents import peer, queue
from tests.servers import eventually
from tests.stores import chance

__all__ = ["chance"]

NAMESPACE, THERE = "e2e-release", "e2e-shop"
LOADED = ("tmq", "ring", "pubsub")  # which answer a message when it is safe
DELETING_S = 20.0
PAUSE_S = (
    120.0  # the longest that a writer may have to wait: pods that go, and the store's server that starts
)


def _namespace(cluster: Cluster, name: str) -> None:
    metadata = {"name": name, "labels": RESTRICTED}
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
    eventually(lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-o", "name", "-n", name))


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images) -> Iterator[Release]:
    """Every pod is ready, in a namespace that admits only restricted ones."""
    _namespace(cluster, NAMESPACE)
    release = Release(cluster, NAMESPACE, images)
    release.install()
    yield release
    cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def test_every_pod_is_ready(release: Release) -> None:
    pods = release.pods()
    assert all(is_ready(pod) for pod in pods)
    assert len(pods) == 2 * len(EDGES) + 2  # and the operator, and Redis


def test_queues_and_peers_become_ready(release: Release) -> None:
    orders = queue("orders", bindings={"rqpMca": {"queueId": 7}, "text": text("order")})
    asked = queue("asked", bindings={"rqpCast": {"key": 8}})
    loaded = queue("load", bindings={"text": {"subscribe": ["load"]}})
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
    _namespace(cluster, THERE)
    there = Release(cluster, THERE, images)
    off = {name: {"enabled": False} for name in ("pubsub", "ring")}
    there.install(crds={"enabled": False}, edges=off)
    peers = f"{FULL}-rqp-peers.{NAMESPACE}.svc"
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
    cluster.kubectl("delete", "namespace", THERE, "--timeout=120s")


def taken(release: Release, name: str) -> str:
    try:
        return release.penstock("get", name)
    except CommandFailed:
        return ""


def check(told: dict[str, Any]) -> None:
    """Nothing that was acknowledged is missing, and everybody got on."""
    print(told)
    assert told["missing_count"] == 0, str(told)
    assert all(told["acked"][edge] > 50 for edge in LOADED), str(told)
    assert max(told["longest_gap_s"].values()) < PAUSE_S, str(told)


def test_an_upgrade_under_load_loses_nothing(release: Release) -> None:
    with load(release, "load", *LOADED) as told:
        release.upgrade(release.images.next_tag, replicas=3)
        eventually(lambda: len(release.pods()) == 3 * len(EDGES) + 2, 90)
    check(told)
    images = {pod["spec"]["containers"][0]["image"] for pod in release.pods("tmq")}
    assert images == {release.images.of("edge", release.images.next_tag)}
    release.wait_ready("queues,peers")


def test_pods_deleted_at_random_under_load_lose_nothing(release: Release, chance: random.Random) -> None:
    with load(release, "load", *LOADED) as told:
        end, deleted = time.monotonic() + DELETING_S, 0
        while time.monotonic() < end:
            pod = chance.choice([each for each in release.pods() if "redis" not in each["metadata"]["name"]])
            killed = ("--grace-period=0", "--force") if chance.random() < 0.5 else ()
            release.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", *killed)
            deleted += 1
            eventually(lambda: sum(map(is_ready, release.pods())) >= 10, 90)
        print(f"{deleted} pods were deleted")
    check(told)
    with step("every pod ready after deletions"):
        eventually(lambda: all(map(is_ready, release.pods())), 90)


def test_the_stores_pod_deleted_under_load_loses_nothing(release: Release) -> None:
    name = f"{FULL}-redis-0"
    with load(release, "load", *LOADED) as told:
        before = release.cluster.get("pod", name, NAMESPACE)["metadata"]["uid"]
        with step("the store's pod deleted and ready again"):
            release.kubectl("delete", "pod", name, "--grace-period=0", "--force")
            eventually(lambda: is_another(release, name, before), 90)
        eventually(lambda: all(map(is_ready, release.pods())), 90)
    check(told)
    release.wait_ready("queues,peers")


def is_another(release: Release, name: str, before: str) -> bool:
    found = [each for each in release.pods() if each["metadata"]["name"] == name]
    return bool(found) and found[0]["metadata"]["uid"] != before and is_ready(found[0])


def test_an_eviction_honours_the_budget(release: Release) -> None:
    """As `kubectl drain` asks: one pod of an edge at a time."""
    first, second, *others = (each["metadata"]["name"] for each in release.pods("tmq"))
    number = 2 + len(others)
    evict(release, first)
    with pytest.raises(CommandFailed, match="violate the pod's disruption budget"):
        evict(release, second)
    with step("an evicted pod replaced"):
        eventually(lambda: sum(map(is_ready, release.pods("tmq"))) == number, 90)
    eventually(lambda: evicted(release, second), 30)
    eventually(lambda: sum(map(is_ready, release.pods("tmq"))) == number, 90)


def evict(release: Release, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    release.cluster.kubectl("create", "--raw", path, "--filename", "-", given=json.dumps(eviction))


def evicted(release: Release, name: str) -> bool:
    try:
        evict(release, name)
    except CommandFailed as refusal:
        if "disruption budget" not in refusal.said:
            raise
        return False
    return True


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
    assert release.penstock("get", "kept") == "in kept"
    release.uninstall()
