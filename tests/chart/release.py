"""A release of the chart on a real API server. No controllers run: what they would do, a test does."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from tests.chart.chart import CHART, NAME, RELEASE, Values, together
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tools.kubernetes.programs import find

INSTANCE = f"app.kubernetes.io/instance={RELEASE}"
# API kinds that a release may have objects of, inside its namespace
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
        """What helm says, NOTES at its end. Raises CommandFailed."""
        return self._helm("install", *values, flags=flags)

    def upgrade(self, *values: Values, flags: tuple[str, ...] = ()) -> str:
        """Raises CommandFailed."""
        return self._helm("upgrade", *values, flags=flags)

    def _helm(self, verb: str, *values: Values, flags: tuple[str, ...]) -> str:
        words = (verb, RELEASE, str(CHART), "--namespace", self.namespace, "--values", "-", *flags)
        return self.cluster.helm(*words, given=yaml.safe_dump(together(*values)))

    def uninstall(self, *flags: str) -> str:
        """Raises CommandFailed."""
        return self.cluster.helm("uninstall", RELEASE, "--namespace", self.namespace, *flags)

    def begin_uninstall(self) -> subprocess.Popen[str]:
        """For whoever does meanwhile what a node would."""
        words = ("uninstall", RELEASE, "--namespace", self.namespace, "--timeout", "120s")
        return subprocess.Popen(
            [find("helm"), *words],
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def scale(self, edge: str, replicas: int) -> None:
        """By the subresource, as somebody else than helm."""
        words = (
            "scale",
            f"deployment/{NAME}-{edge}",
            f"--replicas={replicas}",
            "--namespace",
            self.namespace,
        )
        self.cluster.kubectl(*words)

    def remove(self) -> None:
        """Whatever is left of it goes, with the definitions, which an uninstall keeps."""
        self.uninstall("--no-hooks", "--ignore-not-found")
        self.cluster.kubectl("delete", "--ignore-not-found", "--filename", str(DEFINITIONS))

    def objects(self) -> list[str]:
        """All that belong to the release and are there, in its namespace."""
        words = ("--namespace", self.namespace, "--selector", INSTANCE, "-o", "name")
        return sorted(self.cluster.kubectl("get", ",".join(KINDS), *words).split())

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(kind, name, self.namespace)

    def wait(self, place: str, condition: str) -> None:
        """As kubectl waits: for `condition=Ready`, `jsonpath={.a}=b`. Raises CommandFailed after a minute."""
        words = ("wait", place, f"--for={condition}", "--namespace", self.namespace, "--timeout=60s")
        self.cluster.kubectl(*words)

    def notes(self) -> str:
        return self.cluster.helm("get", "notes", RELEASE, "--namespace", self.namespace)


def queue_of(notes: str) -> str:
    """What NOTES.txt gives to be pasted."""
    return notes.partition("<<'EOF'\n")[2].partition("EOF\n")[0]
