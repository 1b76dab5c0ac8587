"""Build permissions of test users and service accounts: a Role and its binding."""

from __future__ import annotations

from typing import Any

RBAC = "rbac.authorization.k8s.io"
KINDS = ["queues", "peers", "redrives"]
OF_THE_OPERATOR = [  # as in the chart
    {"apiGroups": ["penstock.dev"], "resources": KINDS, "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["penstock.dev"], "resources": [f"{kind}/status" for kind in KINDS], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]},
]


def granted(user: str, rules: list[dict[str, Any]], kind: str = "User") -> list[dict[str, Any]]:
    made = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": user}}
    role = {"apiGroup": RBAC, "kind": "Role", "name": user}
    subject = {"apiGroup": RBAC if kind == "User" else "", "kind": kind, "name": user}
    return [
        {**made, "kind": "Role", "rules": rules},
        {**made, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
    ]


def rights(user: str, kind: str = "User") -> list[dict[str, Any]]:
    """Return the operator's permissions for a user or service account."""
    return granted(user, OF_THE_OPERATOR, kind)
