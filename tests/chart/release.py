"""A release of the chart on a real API server. No controllers run: what they would do, a test does."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from tests.chart.chart import CHART, RELEASE, Values, render, together
from tests.kubernetes.cluster import Cluster
from tools.kubernetes.programs import find

INSTANCE = f"app.kubernetes.io/instance={RELEASE}"
# API kinds that a release may have objects of, inside its namespace
KINDS = (
    *("configmaps", "secrets", "services", "serviceaccounts", "pods", "deployments", "statefulsets", "jobs"),
    *("cronjobs", "roles", "rolebindings", "networkpolicies", "poddisruptionbudgets"),
    *("horizontalpodautoscalers", "ingresses"),
)
FOREIGN = ("monitoring.coreos.com", "keda.sh", "sparkoperator.k8s.io")  # groups that it does not know


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

    def would_take(self, *values: Values) -> None:
        """Each object is sent to the API server, which keeps none of them. Raises CommandFailed for one it refuses."""
        made = render(*values, namespace=self.namespace).objects.values()
        known = [each for each in made if each["apiVersion"].partition("/")[0] not in FOREIGN]
        flags = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
        words = ("--namespace", self.namespace, *flags, "--filename", "-")
        self.cluster.kubectl("apply", *words, given=yaml.safe_dump_all(known))

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

    def objects(self) -> list[str]:
        """All that belong to the release and are there, in its namespace."""
        words = ("--namespace", self.namespace, "--selector", INSTANCE, "-o", "name")
        return sorted(self.cluster.kubectl("get", ",".join(KINDS), *words).split())

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(kind, name, self.namespace)

    def notes(self) -> str:
        return self.cluster.helm("get", "notes", RELEASE, "--namespace", self.namespace)


def queue_of(notes: str) -> str:
    """What NOTES.txt gives to be pasted."""
    return notes.partition("<<'EOF'\n")[2].partition("EOF\n")[0]
