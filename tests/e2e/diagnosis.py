"""How a cluster stands, for whoever reads that a test failed."""

from __future__ import annotations

import json

from tests.kubernetes.cluster import Cluster, CommandFailed

LAST_LINES = 30
QUESTIONS = (
    ("get", "pods", "--all-namespaces", "-o", "wide"),
    ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
)


def diagnosis(cluster: Cluster) -> str:
    """Its pods, the last of what happened, and the last that pods said which are not ready."""
    answers = [_end(_ask(cluster, *question)) for question in QUESTIONS]
    return "\n\n".join([*answers, *_logs(cluster)])


def _logs(cluster: Cluster) -> list[str]:
    pods = json.loads(_ask(cluster, "get", "pods", "--all-namespaces", "-o", "json") or '{"items": []}')[
        "items"
    ]
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods if not _is_ready(pod)]
    how = ("--all-containers", f"--tail={LAST_LINES}")
    return [f"{name}:\n{_ask(cluster, 'logs', '-n', namespace, name, *how)}" for namespace, name in names]


def _is_ready(pod: dict[str, object]) -> bool:
    conditions = pod["status"].get("conditions", ())  # type: ignore[attr-defined]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _ask(cluster: Cluster, *words: str) -> str:
    try:
        return cluster.kubectl(*words)
    except CommandFailed as error:
        return "" if "json" in words else str(error)


def _end(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
