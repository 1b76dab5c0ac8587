"""A cluster given by a kubeconfig, accessed only through kubectl, which supports all login methods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.kubernetes.cluster import Cluster, Document


class GivenCluster(Cluster):
    def apply(self, documents: Sequence[Document], *flags: str) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "--filename", "-", *flags, given=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json", *_within(namespace)))
        return found

    def items(self, kind: str, namespace: str = "") -> list[dict[str, Any]]:
        where = _within(namespace) or ("--all-namespaces",)
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json", *where))["items"]
        return found


def _within(namespace: str) -> tuple[str, ...]:
    return ("--namespace", namespace) if namespace else ()
