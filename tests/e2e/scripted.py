"""Run scripts of the tests in pods of the edge image, which can connect to Services on any cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.pods import IDLE, pod
from tests.e2e.release import EDGES, FULL, Release
from tests.servers import eventually

SCRIPTS = Path(__file__).parent / "scripts"
PLACES = {
    "tmq": f"tmq={FULL}-tmq:6161",
    "ring": f"ring={FULL}-ring:9000",
    "pubsub": f"pubsub={FULL}-pubsub:7171",
    "rqp": f"rqp={FULL}-rqp:11311",
}
END_S = 150.0
BEGIN_S = 30.0
LOADED = EDGES  # every edge answers once a message is stored
AFTER = 300  # messages of all writers together, dozens of each


def _pod(release: Release, name: str, *command: str) -> None:
    scripts = {path.name: path.read_text("utf-8") for path in SCRIPTS.glob("*.py")}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"}, "data": scripts}
    made = pod(name, release.images.of("edge"), command=command)
    made["spec"]["restartPolicy"] = "Never"
    made["spec"]["volumes"].append({"name": "scripts", "configMap": {"name": "scripts"}})
    made["spec"]["containers"][0]["volumeMounts"].append({"name": "scripts", "mountPath": "/scripts"})
    release.apply(config, made)


def run_script(release: Release, script: str, *words: str) -> str:
    """Run a script in a pod and return its output. Raise CommandFailed if it fails."""
    _pod(release, "client", *IDLE)
    release.wait_ready("pod", "client")
    try:
        return release.kubectl("exec", "client", "--", "python", f"/scripts/{script}", *words)
    finally:
        release.kubectl("delete", "pod", "client", "--grace-period=1")


@contextmanager
def load(release: Release, queue: str, *edges: str) -> Iterator[dict[str, Any]]:
    """Run writers on these edges, and readers, inside the context; then fill the yielded dict with their report."""
    found: dict[str, Any] = {}
    before = added(release, queue)
    _pod(release, "load", "python", "/scripts/load.py", queue, *(PLACES[edge] for edge in edges))
    try:
        release.wait_ready("pod", "load")
        eventually(lambda: added(release, queue) > before + 100, BEGIN_S)
        yield found
        after = added(release, queue)
        # the writers must still make progress
        eventually(lambda: added(release, queue) > after + AFTER, BEGIN_S)
        release.kubectl("exec", "load", "--", "touch", "/tmp/stop")
        phase = "jsonpath={.status.phase}"
        eventually(lambda: release.kubectl("get", "pod", "load", "-o", phase) != "Running", END_S)
        found.update(json.loads(release.kubectl("logs", "load")), stats=_stats(release, queue))
    finally:
        release.kubectl("delete", "pod", "load", "--grace-period=1")


def check_load(report: dict[str, Any], pause_s: float, breaks: int, is_in_order: bool = False) -> None:
    """Check that no acknowledged message is missing, and that pauses and broken connections stay within limits.

    With `is_in_order` pods end gracefully, and no connection may be refused. Even without failures there are pauses,
    because the machine starts a dozen pods at once.
    """
    print(report)
    assert report["missing_count"] == 0, str(report)
    assert all(report["acked"][name] > 10 for edge in LOADED for name in (edge, f"{edge} anew")), str(report)
    assert max(report["longest_gap_s"].values()) < pause_s, str(report)
    assert max(report["breaks"].get(edge, 0) for edge in LOADED) <= breaks, str(report)
    assert all(report["taken"][edge] > 50 for edge in ("tmq", "ring")), str(report)
    assert not (is_in_order and report["refused"]), str(report)


def added(release: Release, queue: str) -> int:
    """Return how many messages the queue has accepted so far."""
    return int(_stats(release, queue)["added"])


def _stats(release: Release, queue: str) -> dict[str, Any]:
    document: dict[str, Any] = eventually(
        lambda: release.cli_json(f"deployment/{FULL}-tmq", "queue", "show", queue), BEGIN_S
    )
    return dict(document["stats"])
