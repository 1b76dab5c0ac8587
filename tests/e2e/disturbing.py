"""What happens to pods of a release: they are killed, deleted, evicted."""

from __future__ import annotations

import json
import signal
from typing import Any

from tests.e2e.node.node import Node
from tests.e2e.release import Release, is_ready
from tests.kubernetes.cluster import CommandFailed


def kill(release: Release, node: Node | None, pod: dict[str, Any]) -> bool:
    """As the kernel kills for want of memory: nothing drains. On somebody's own cluster it is deleted by force.

    False: its container was gone already, and the API server had not heard of that yet.
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
    """Raises ConnectionError while there is none."""
    for pod in release.pods("redis"):
        return pod
    raise ConnectionError("the store has no pod")


def is_another(release: Release, before: dict[str, Any]) -> bool:
    found = store_pod(release)
    return found["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(found)


def number_ready(release: Release, edge: str) -> int:
    return sum(map(is_ready, release.pods(edge)))


def evict(release: Release, name: str) -> None:
    """As `kubectl drain` asks. Raises CommandFailed."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{release.namespace}/pods/{name}/eviction"
    release.cluster.kubectl("create", "--raw", path, "--filename", "-", given=json.dumps(eviction))


def evicted(release: Release, name: str) -> bool:
    """Whether its budget let it go. Raises CommandFailed if anything else kept it."""
    try:
        evict(release, name)
    except CommandFailed as refusal:
        if "disruption budget" not in refusal.said:
            raise
        return False
    return True


def processes(release: Release) -> set[tuple[str, str, int]]:
    """Each pod's name, which one of that name it is, and how often its container was started again."""
    return {
        (
            pod["metadata"]["name"],
            pod["metadata"]["uid"],
            pod["status"]["containerStatuses"][0]["restartCount"],
        )
        for pod in release.pods()
    }
