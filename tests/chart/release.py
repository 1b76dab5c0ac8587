"""A release of the chart on a real API server. No controllers run; tests do their work."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from tests.chart.chart import CHART, NAME, RELEASE, Values, together
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tools.kubernetes.programs import find

INSTANCE = f"app.kubernetes.io/instance={RELEASE}"
# namespaced kinds that a release may contain
KINDS = (
    *("configmaps", "secrets", "services", "serviceaccounts", "pods", "deployments", "statefulsets", "jobs"),
    *("cronjobs", "roles", "rolebindings", "networkpolicies", "poddisruptionbudgets"),
    *("horizontalpodautoscalers", "ingresses"),
)


class Release:
    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def install(self, *values: Values, flags: tuple[str, ...] = ()) -> str:
        """Return helm's output, which ends with NOTES. Raises CommandFailed."""
        return self._helm("install", *values, flags=flags)

    def upgrade(self, *values: Values, flags: tuple[str, ...] = ()) -> str:
        """Upgrade the release. Raises CommandFailed."""
        return self._helm("upgrade", *values, flags=flags)

    def _helm(self, verb: str, *values: Values, flags: tuple[str, ...]) -> str:
        words = (verb, RELEASE, str(CHART), "--namespace", self.namespace, "--values", "-", *flags)
        return self.cluster.helm(*words, given=yaml.safe_dump(together(*values)))

    def uninstall(self, *flags: str) -> str:
        """Uninstall the release. Raises CommandFailed."""
        return self.cluster.helm("uninstall", RELEASE, "--namespace", self.namespace, *flags)

    def begin_uninstall(self) -> subprocess.Popen[str]:
        """Start an uninstall in the background, for tests that act as controllers meanwhile."""
        words = ("uninstall", RELEASE, "--namespace", self.namespace, "--timeout", "120s")
        return subprocess.Popen(
            [find("helm"), *words],
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def scale(self, edge: str, replicas: int) -> None:
        """Set replicas through the subresource, not as helm."""
        words = (
            "scale",
            f"deployment/{NAME}-{edge}",
            f"--replicas={replicas}",
            "--namespace",
            self.namespace,
        )
        self.cluster.kubectl(*words)

    def remove(self) -> None:
        """Delete all remaining objects, including the CRDs, which an uninstall keeps."""
        self.uninstall("--no-hooks", "--ignore-not-found")
        self.cluster.kubectl("delete", "--ignore-not-found", "--filename", str(DEFINITIONS))

    def objects(self) -> list[str]:
        """Return all existing objects of the release in its namespace."""
        words = ("--namespace", self.namespace, "--selector", INSTANCE, "-o", "name")
        return sorted(self.cluster.kubectl("get", ",".join(KINDS), *words).split())

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(kind, name, self.namespace)

    def wait(self, place: str, condition: str) -> None:
        """Wait like kubectl, for `condition=Ready` or `jsonpath={.a}=b`. Raises CommandFailed after a minute."""
        words = ("wait", place, f"--for={condition}", "--namespace", self.namespace, "--timeout=60s")
        self.cluster.kubectl(*words)

    def notes(self) -> str:
        return self.cluster.helm("get", "notes", RELEASE, "--namespace", self.namespace)


def queue_of(notes: str) -> str:
    """Return the Queue from NOTES.txt."""
    return notes.partition("<<'EOF'\n")[2].partition("EOF\n")[0]
