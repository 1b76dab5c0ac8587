"""Kill, delete and evict pods of a release."""

from __future__ import annotations

import json
import signal
from typing import Any

from tests.e2e.node.node import Node
from tests.e2e.release import Release, is_ready
from tests.kubernetes.cluster import CommandFailed


def kill(release: Release, node: Node | None, pod: dict[str, Any]) -> bool:
    """Kill a container without a drain, like the OOM killer; on a given cluster, delete the pod by force.

    Return False if the container was already gone and the API server did not know yet.
    """
    if node is None:
        release.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
        return True
    (status,) = pod["status"]["containerStatuses"]
    return node.containers.kill(status["containerID"].rpartition("/")[2])


def was_killed(pod: dict[str, Any]) -> bool:
    (status,) = pod["status"]["containerStatuses"]
    ended = status["lastState"].get("terminated", {}) if status["ready"] else {}
    return bool(ended and ended["exitCode"] == 128 + signal.SIGKILL)


def store_pod(release: Release) -> dict[str, Any]:
    """Return the pod of the store. Raise ConnectionError while it does not exist."""
    for pod in release.pods("redis"):
        return pod
    raise ConnectionError("the store has no pod")


def is_another(release: Release, before: dict[str, Any]) -> bool:
    found = store_pod(release)
    return found["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(found)


def number_ready(release: Release, edge: str) -> int:
    return sum(map(is_ready, release.pods(edge)))


def evict(release: Release, name: str) -> None:
    """Evict a pod like `kubectl drain` does. Raise CommandFailed if that is refused."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{release.namespace}/pods/{name}/eviction"
    release.cluster.kubectl("create", "--raw", path, "--filename", "-", given=json.dumps(eviction))


def evicted(release: Release, name: str) -> bool:
    """Return whether the disruption budget allowed an eviction. Raise CommandFailed if it failed for another reason."""
    try:
        evict(release, name)
    except CommandFailed as refusal:
        if "disruption budget" not in refusal.said:
            raise
        return False
    return True


def processes(release: Release) -> set[tuple[str, str, int]]:
    """Return name, UID and restart count of each pod."""
    return {
        (
            pod["metadata"]["name"],
            pod["metadata"]["uid"],
            pod["status"]["containerStatuses"][0]["restartCount"],
        )
        for pod in release.pods()
    }
