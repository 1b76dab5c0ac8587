"""State of a cluster, for reports of failed tests."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.cluster import Cluster, CommandFailed

Pod = dict[str, Any]
LAST_LINES = 30
RING_STATUS = ("penstock", "ring", "status")
QUESTIONS = (
    ("get", "pods", "--all-namespaces", "-o", "wide"),
    ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
)


def diagnosis(cluster: Cluster) -> str:
    """Return pods, last events, last log lines of pods that are not ready, and ring status of each ring's pods."""
    answers = [_end(_ask(cluster, *question)) for question in QUESTIONS]
    pods = json.loads(_ask(cluster, "get", "pods", "--all-namespaces", "-o", "json") or '{"items": []}')[
        "items"
    ]
    return "\n\n".join([*answers, *_logs(cluster, pods), *_rings(cluster, pods)])


def _logs(cluster: Cluster, pods: list[Pod]) -> list[str]:
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods if not _is_ready(pod)]
    how = ("--all-containers", f"--tail={LAST_LINES}")
    return [f"{name}:\n{_ask(cluster, 'logs', '-n', namespace, name, *how)}" for namespace, name in names]


def _rings(cluster: Cluster, pods: list[Pod]) -> list[str]:
    """Return the ring status of each ring pod; a broken ring leaves its pods ready."""
    texts = []
    for pod in (each["metadata"] for each in pods):
        if pod.get("labels", {}).get("app.kubernetes.io/component") == "ring":
            said = _ask(cluster, "exec", "-n", pod["namespace"], pod["name"], "--", *RING_STATUS)
            texts.append(f"{pod['name']}, {' '.join(RING_STATUS)}:\n{said}")
    return texts


def _is_ready(pod: Pod) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _ask(cluster: Cluster, *words: str) -> str:
    try:
        return cluster.kubectl(*words)
    except CommandFailed as error:
        return "" if "json" in words else str(error)


def _end(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
