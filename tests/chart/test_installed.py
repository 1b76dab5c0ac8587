"""Upgrades of a release and its permissions, on a real API server: docs/chart.md."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

import pytest

from tests.chart.chart import CHART, NAME, RELEASE, Values, nested
from tests.chart.console import CONSOLE
from tests.chart.release import Release
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import CommandFailed
from tests.kubernetes.namespaces import RESTRICTED
from tests.servers import eventually

SCALED: Values = nested("edges.tmq.autoscaling.type", "hpa")
DRY = ("--dry-run=server",)  # the dry run reads the cluster and changes nothing


def secret(release: Release, part: str) -> dict[str, str]:
    data = release.get("secret", f"{NAME}-{part}")["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def annotations(release: Release) -> Mapping[str, str]:
    template = release.get("deployment", f"{NAME}-tmq")["spec"]["template"]
    found: Mapping[str, str] = template["metadata"]["annotations"]
    return found


def replicas(release: Release) -> int:
    found: int = release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"]
    return found


def test_upgrade_keeps_passwords_without_restarts(
    installed: Release,
) -> None:
    """Check that explicit passwords stay in the values and generated ones in Secrets, so that values can be reused."""
    installed.upgrade(CONSOLE)
    made, before, (token,) = (
        secret(installed, "redis"),
        annotations(installed),
        secret(installed, "console").values(),
    )
    assert ({len(password) for password in made.values()}, len(token)) == ({32}, 40)
    assert len(set(made.values())) == 2
    (line,) = [line for line in installed.notes().splitlines() if "get secret" in line]
    words, template = line.strip().removeprefix("kubectl ").split(" go-template=")
    shown = installed.cluster.kubectl(*words.split(), "go-template=" + template.strip("'"))
    assert shown.strip() == token

    admin = {"name": "admin", "role": "admin", "key": "admin-token"}
    viewer = {"name": "grafana", "role": "view", "key": "grafana"}
    both = nested("console.auth.tokens", [admin, viewer])
    installed.upgrade(CONSOLE, both, nested("edges.tmq.replicas", 3))
    assert replicas(installed) == 3
    assert (secret(installed, "redis"), annotations(installed)) == (made, before)
    tokens = secret(installed, "console")
    assert (tokens["admin-token"], set(tokens)) == (token, {"admin-token", "grafana"})
    assert token not in json.dumps(installed.get("deployment", f"{NAME}-console"))

    values = nested("redis.auth.edgePassword", "a" * 32)
    installed.upgrade(values)
    assert secret(installed, "redis") == {**made, "edge-password": "a" * 32}
    assert annotations(installed)["checksum/store"] != before["checksum/store"]
    get = ("get", "values", RELEASE, "--namespace", installed.namespace, "-o", "json")
    assert json.loads(installed.cluster.helm(*get)) == values


def test_edge_keeps_its_pods_when_autoscaling_changes(installed: Release) -> None:
    """Check that the number of pods stays until the autoscaler changes it (docs/chart.md, "Upgrade")."""
    five = nested("edges.tmq.replicas", 5)
    installed.upgrade(five)
    installed.upgrade(five, SCALED)
    installed.scale("tmq", 8)  # as a HorizontalPodAutoscaler does
    installed.upgrade(five, SCALED)
    assert replicas(installed) == 8
    with pytest.raises(CommandFailed, match=r"conflict.*\.spec\.replicas"):
        installed.upgrade(five)
    installed.upgrade(five, flags=("--force-conflicts",))
    assert replicas(installed) == 5


def test_new_name_does_not_abandon_the_store(installed: Release) -> None:
    """Check that a new name is refused, as the new store would be empty (docs/chart.md, "Upgrade")."""
    own, new = f"the release's store is {NAME}-redis", f"the new name {RELEASE}-q-redis"
    with pytest.raises(CommandFailed, match=f"{own}, and {new}.*set fullnameOverride={NAME}"):
        installed.upgrade({"nameOverride": "q"}, flags=DRY)
    assert "WARNING" not in installed.upgrade({"nameOverride": "q", "fullnameOverride": NAME}, flags=DRY)


def test_second_release_in_a_namespace_is_warned(installed: Release) -> None:
    """Check the warning for a second release in a namespace (docs/chart.md, "Namespaces and rights")."""
    words = (
        "install",
        "beside",
        str(CHART),
        "--namespace",
        installed.namespace,
        "--set",
        "crds.enabled=false",
    )
    output = installed.cluster.helm(*words, *DRY)
    assert f"WARNING: {RELEASE} also has an operator in this namespace" in output


# Permissions ----------------------------------------------------------------------------------------------------------

ROLES = ("view", "edit", "admin")  # with the aggregated rules
AGGREGATES = tuple(f"rbac.authorization.k8s.io/aggregate-to-{role}" for role in ROLES)


def test_namespace_editors_may_edit_queues(api_server: ApiServer, installed: Release) -> None:
    """Check that editors of the namespace may edit queues, by ClusterRoles aggregated to view and edit."""
    role = f"{installed.namespace}.{NAME}-"
    cluster, where = installed.cluster, ("--namespace", installed.namespace)
    for name, user in (("view", "nobody"), ("edit", "developer")):
        cluster.kubectl(
            "create", "rolebinding", name, f"--clusterrole={role}{name}", f"--user={user}", *where
        )
    developer, viewer = api_server.as_user("developer"), api_server.as_user("nobody")
    for kind in ("queues.penstock.dev", "peers.penstock.dev", "redrives.penstock.dev"):
        eventually(lambda kind=kind: developer.may("create", kind, installed.namespace))
        eventually(lambda kind=kind: viewer.may("list", kind, installed.namespace))
        assert not viewer.may("create", kind, installed.namespace)
    labels = cluster.get("clusterrole", f"{role}view")["metadata"]["labels"]
    assert labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true"


@pytest.fixture
def tenant(api_server: ApiServer, installed: Release, new_namespace: Callable[..., str]) -> Release:
    """Return a release of a namespace's admin, with the rules that the controller would aggregate into `admin`."""
    cluster, namespace = installed.cluster, new_namespace(**RESTRICTED)
    for role in cluster.items("clusterroles.rbac.authorization.k8s.io"):
        name = role["metadata"]["name"]
        if any(label in AGGREGATES for label in role["metadata"].get("labels") or ()) and name not in ROLES:
            words = (f"--clusterrole={name}", "--user=developer", "--namespace", namespace)
            cluster.kubectl("create", "rolebinding", name.replace(":", "-"), *words)
    tenant = api_server.as_user("developer")
    eventually(lambda: tenant.may("create", "roles.rbac.authorization.k8s.io", namespace))
    return Release(tenant, namespace)


def test_tenant_installs_in_its_namespace(tenant: Release) -> None:
    """Check an installation with another release's CRDs and roles (docs/chart.md, "Namespaces and rights")."""
    with pytest.raises(CommandFailed, match=r"customresourcedefinitions.*forbidden"):
        tenant.install()
    modest = {"crds": {"enabled": False}, "rbac": {"aggregate": False}}
    tenant.install(modest, flags=("--replace",))
    assert f"role.rbac.authorization.k8s.io/{NAME}-operator" in tenant.objects()
    tenant.uninstall("--no-hooks")
    assert tenant.objects() == []
