"""Install, upgrade and uninstall on a real API server: docs/chart.md."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.kit.parent import die_with_parent
from tests.chart.chart import CHART, NAME, RELEASE, Values, nested, pod_of, render
from tests.chart.release import Release, queue_of
from tests.chart.switches import SWITCHES
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import DEFINITIONS, Cluster, CommandFailed
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace
from tests.operator.program import ROOT, OperatorProgram
from tests.servers import PROGRAMS, Server, eventually

NewNamespace = Callable[..., str]
WARNS = "pod-security.kubernetes.io/warn"
EVERYTHING: Values = {
    "console": {"enabled": True, "ingress": {"enabled": True, "hosts": ["console.example.org"]}},
    "analytics": {"enabled": True, "executors": {"enabled": True}},
    "edges": {"tmq": {"autoscaling": {"type": "hpa"}}},
    "monitoring": {"dashboards": {"enabled": True}},
}
FOREIGN = ("keda", "scheduledSparkApplication")


@pytest.fixture
def release(cluster: Cluster, new_namespace: NewNamespace) -> Iterator[Release]:
    """To be installed by the test; whatever it leaves of it goes."""
    released = Release(cluster, new_namespace(**RESTRICTED))
    yield released
    cluster.helm("uninstall", RELEASE, "--namespace", released.namespace, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def test_helm_finds_nothing_wrong(cluster: Cluster) -> None:
    cluster.helm("lint", "--strict", str(CHART))


def _is_of_the_cluster(switch: Any) -> bool:
    return not switch.path.startswith("monitoring.") and switch.on not in FOREIGN


@pytest.fixture(scope="module")
def dry(api_server: ApiServer) -> Iterator[Release]:
    """Where nothing is ever installed."""
    administrator = api_server.as_user()
    namespace = make_namespace(administrator)
    yield Release(administrator, namespace)
    remove_namespace(administrator, namespace)


@pytest.mark.parametrize("switch", list(filter(_is_of_the_cluster, SWITCHES)), ids=lambda switch: switch.path)
def test_the_api_server_takes_whatever_a_switch_makes(dry: Release, switch: Any) -> None:
    """But for custom resources of others, which it does not know."""
    values = nested(switch.path, [dry.namespace]) if "namespaces" in switch.path else switch.values_on
    dry.install(switch.beside, values, flags=("--dry-run=server", "--hide-notes"))


def test_every_pod_is_admitted_where_only_restricted_ones_are(release: Release) -> None:
    """The API server's own admission, for a pod of each template, hooks and the test among them."""
    release.install(EVERYTHING)
    tried = []
    for place, template in render(EVERYTHING).pods():
        made = _pod(place, template, release.namespace)
        release.cluster.kubectl("create", "--filename", "-", given=json.dumps(made))
        tried.append(place.rpartition("-")[2])
    assert sorted(tried) == sorted(
        ["tmq", "pubsub", "rqp", "ring", "operator", "redis", "uninstall", "console", "analytics", "test"]
    )


def test_what_the_nodes_network_gives_up_is_refused_there(release: Release) -> None:
    """So that the test before could fail."""
    release.install()
    rendered = render(nested("edges.rqp.hostNetwork", True))
    made = _pod("rqp", pod_of(rendered[f"Deployment/{NAME}-rqp"]), release.namespace)
    with pytest.raises(CommandFailed, match=r'violates PodSecurity "restricted.*host namespaces'):
        release.cluster.kubectl("create", "--filename", "-", given=json.dumps(made))


def _pod(place: str, template: Any, namespace: str) -> dict[str, Any]:
    """As a controller would make it; of hooks the ServiceAccount may not be there yet."""
    name = place.rpartition("/")[2].lower() + "-tried"
    spec = {**template["spec"]}
    if place.endswith("-uninstall"):
        spec["serviceAccountName"] = "default"
    if place.startswith("StatefulSet/") and place.endswith("-redis"):
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}
        spec["volumes"] = [*spec["volumes"], claim]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_templates_are_admitted_without_a_warning(cluster: Cluster, release: Release) -> None:
    """helm tells what the API server warns of."""
    cluster.kubectl("label", "namespace", release.namespace, f"{WARNS}=restricted")
    assert "Warning" not in release.install(EVERYTHING)


def _passwords(release: Release) -> dict[str, str]:
    data = release.get("secret", f"{NAME}-redis")["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _annotations(release: Release) -> Mapping[str, str]:
    found: Mapping[str, str] = release.get("deployment", f"{NAME}-tmq")["spec"]["template"]["metadata"][
        "annotations"
    ]
    return found


def test_an_upgrade_keeps_passwords_and_restarts_nothing(release: Release) -> None:
    release.install()
    made, before = _passwords(release), _annotations(release)
    assert {len(password) for password in made.values()} == {32}
    assert len(set(made.values())) == 2
    release.upgrade(nested("edges.tmq.replicas", 3))
    assert release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"] == 3
    assert _passwords(release) == made
    assert _annotations(release) == before


def test_a_password_that_is_said_counts_and_restarts_pods(release: Release) -> None:
    release.install()
    made, before = _passwords(release), _annotations(release)
    release.upgrade(nested("redis.auth.edgePassword", "another"))
    assert _passwords(release) == {"admin-password": made["admin-password"], "edge-password": "another"}
    assert _annotations(release)["checksum/store"] != before["checksum/store"]


def test_replicas_of_a_scaled_edge_are_the_scalers(release: Release) -> None:
    """As one would scale it, so that an upgrade does not undo it."""
    release.install(EVERYTHING)
    release.cluster.kubectl(
        "scale", f"deployment/{NAME}-tmq", "--replicas=7", "--namespace", release.namespace
    )
    release.upgrade(EVERYTHING, nested("edges.tmq.settings.workers", 2))
    assert release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"] == 7


def test_an_uninstall_keeps_definitions_and_queues_and_removes_the_rest(
    cluster: Cluster, release: Release
) -> None:
    notes = release.install(EVERYTHING)
    assert len(release.objects()) > 40
    cluster.kubectl("apply", "--namespace", release.namespace, "--filename", "-", given=queue_of(notes))
    release.uninstall("--no-hooks")
    assert release.objects() == []
    assert cluster.items("clusterroles.rbac.authorization.k8s.io") == [
        each for each in cluster.items("clusterroles.rbac.authorization.k8s.io") if RELEASE not in str(each)
    ]
    assert [each["metadata"]["name"] for each in cluster.items("queues", release.namespace)] == ["orders"]
    release.install()  # finds its own definitions again
    assert cluster.items("queues", release.namespace)


def test_definitions_go_with_the_release_where_that_is_said(cluster: Cluster, release: Release) -> None:
    release.install(nested("crds.keep", False))
    release.uninstall("--no-hooks")

    def are_gone() -> bool:
        found = cluster.items("customresourcedefinitions")
        return not [each for each in found if each["spec"]["group"] == "penstock.dev"]

    eventually(are_gone)


def test_a_second_release_leaves_the_definitions_to_the_first(
    release: Release, new_namespace: NewNamespace
) -> None:
    everywhere = nested("operator.watch.allNamespaces", True)
    release.install(everywhere)
    other = Release(release.cluster, new_namespace())
    with pytest.raises(CommandFailed, match="cannot be imported into the current release"):
        other.install(everywhere)
    other.install(everywhere, nested("crds.enabled", False))
    assert len(other.objects()) > 20
    other.uninstall("--no-hooks")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    yield server
    server.end()


def _told(container: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.fixture
def operator(
    api_server: ApiServer, release: Release, store: Server, tmp_path: Path
) -> Iterator[OperatorProgram]:
    """As its pod would run: with the rights and the environment that the chart gives it."""
    release.install()
    account = api_server.as_service_account(release.namespace, f"{NAME}-operator")
    container = release.get("deployment", f"{NAME}-operator")["spec"]["template"]["spec"]["containers"][0]
    prefix = "PENSTOCK_OPERATOR_"
    settings = {
        name.removeprefix(prefix).lower(): value
        for name, value in _told(container).items()
        if name.startswith(prefix) and "HEALTH" not in name
    }
    own_store = settings.pop("store")
    program = OperatorProgram(account, store.url, tmp_path, **settings)
    program.environment["PENSTOCK_OPERATOR_STORE"] = own_store
    yield program.start()
    if program.process is not None and program.process.poll() is None:
        program.kill()


def _slice(release: Release, edge: str, port: dict[str, Any]) -> dict[str, Any]:
    """As the endpoint controller would make it of an edge's Service: with its labels."""
    service = release.get("service", f"{NAME}-{edge}")
    labels = {**service["metadata"]["labels"], "kubernetes.io/service-name": f"{NAME}-{edge}"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{NAME}-{edge}-1", "namespace": release.namespace, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
        "ports": [port],
    }


def test_the_operator_does_its_work_with_the_rights_of_the_chart_and_lets_go_in_the_end(
    api_server: ApiServer, release: Release, operator: OperatorProgram, tmp_path: Path
) -> None:
    """The Queue of NOTES becomes Ready, its own edges are found; then the hook's Job, run as its pod would."""
    operator.ready()
    cluster, namespace = release.cluster, release.namespace
    cluster.kubectl("apply", "--namespace", namespace, "--filename", "-", given=queue_of(release.notes()))
    wait = ("wait", "--namespace", namespace, "--for=condition=Ready", "queue/orders", "--timeout=30s")
    assert "condition met" in cluster.kubectl(*wait)
    cluster.apply([_slice(release, "rqp", {"name": "rqp-cast", "port": 11312, "protocol": "UDP"})])
    eventually(lambda: release.get("configmap", f"{NAME}-rqprc").get("data") == {"rqprc": "10.1.2.3:11312\n"})
    assert "forbidden" not in operator.text().lower()

    leaving = release.begin_uninstall()
    try:
        job = eventually(lambda: _job(release))
        done = _as_the_pod(api_server, release, job, tmp_path)
        assert done.returncode == 0, done
        assert "uninstall_cut" not in done.stderr, done
        assert release.get("deployment", f"{NAME}-operator")["spec"]["replicas"] == 0
        _complete(release)
        said, _ = leaving.communicate(timeout=120)
    finally:
        leaving.kill()
        leaving.wait()
    assert leaving.returncode == 0, said
    assert release.objects() == []
    (queue,) = cluster.items("queues", namespace)
    assert not queue["metadata"].get("finalizers")


def _job(release: Release) -> Any:
    found = release.cluster.items("jobs", release.namespace)
    return found[0] if found else None


def _as_the_pod(
    api_server: ApiServer, release: Release, job: Any, folder: Path
) -> subprocess.CompletedProcess[str]:
    spec = job["spec"]["template"]["spec"]
    account = api_server.as_service_account(release.namespace, spec["serviceAccountName"])
    (container,) = spec["containers"]
    environment = {
        **account.environment,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}",
        "POD_NAMESPACE": release.namespace,
        **_told(container),
    }
    return subprocess.run(
        [sys.executable, "-P", "-m", "penstock_operator", *container["args"]],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=90,
        preexec_fn=partial(die_with_parent, os.getpid()),
    )


def _complete(release: Release) -> None:
    """What the Job's controller says in the end."""
    now = "2026-01-01T00:00:00Z"
    met = [
        {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"succeeded": 1, "startTime": now, "completionTime": now, "conditions": met}
    release.cluster.kubectl(
        *("patch", "job", f"{NAME}-uninstall", "--namespace", release.namespace, "--subresource=status"),
        *("--type=merge", "--patch", json.dumps({"status": status})),
    )


def test_who_may_edit_a_namespace_may_edit_its_queues(api_server: ApiServer, release: Release) -> None:
    """By the ClusterRoles that Kubernetes adds to its own view and edit."""
    release.install()
    role = f"{release.namespace}-{NAME}-"
    cluster, where = release.cluster, ("--namespace", release.namespace)
    for name, user in (("view", "nobody"), ("edit", "developer")):
        cluster.kubectl(
            "create", "rolebinding", name, f"--clusterrole={role}{name}", f"--user={user}", *where
        )
    developer, nobody = api_server.as_user("developer"), api_server.as_user("nobody")
    for kind in ("queues.penstock.dev", "peers.penstock.dev", "redrives.penstock.dev"):
        eventually(lambda kind=kind: developer.may("create", kind, release.namespace))
        eventually(lambda kind=kind: nobody.may("list", kind, release.namespace))
        assert not nobody.may("create", kind, release.namespace)
    labels = cluster.get("clusterrole", f"{role}view")["metadata"]["labels"]
    assert labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
