"""Who may do what in a release, and that it suffices: docs/chart.md, "Namespaces and rights"."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from penstock_operator.documents.declared import FINALIZER

from services.system.pdeathsig import die_with_parent
from tests.chart.chart import NAME, RELEASE, nested
from tests.chart.release import Release, queue_of
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import CommandFailed
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace
from tests.operator.keeper import Keeper
from tests.operator.peers.test_peers import endpoints
from tests.operator.program import ROOT, OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue, redrive
from tests.servers import PROGRAMS, Server, eventually


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    yield server
    server.end()


def _told(container: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.fixture
def watch() -> dict[str, Any]:
    """What the operator is told of namespaces."""
    return {}


@pytest.fixture
def discover() -> list[str]:
    """Return the namespaces in which the operator looks for edges of other releases."""
    return []


@pytest.fixture
def operator(
    api_server: ApiServer,
    release: Release,
    store: Server,
    tmp_path: Path,
    watch: dict[str, Any],
    discover: list[str],
) -> Iterator[OperatorProgram]:
    """As its pod would run: with the rights and the environment that the chart gives it."""
    release.install(nested("operator", {"watch": watch, "discover": {"namespaces": discover}}))
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
    program.environment |= {"PENSTOCK_OPERATOR_STORE": own_store, "POD_NAMESPACE": release.namespace}
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
    eventually(lambda: (release.get("configmap", f"{NAME}-dataset").get("data") or {}).get("dataset"))
    assert "forbidden" not in operator.text().lower()

    done = _uninstalled(api_server, release, tmp_path)
    assert "uninstall_cut" not in done.stderr, done
    (queue,) = cluster.items("queues", namespace)
    assert not queue["metadata"].get("finalizers")


class TestNeighbours:
    """A release finds the edges of another one by its namespace, and leaves its resources alone (Discovery)."""

    @pytest.fixture
    def discover(self, new_namespace: Callable[..., str]) -> list[str]:
        return [new_namespace()]

    def test_edges_of_a_release_elsewhere_are_peers_and_its_resources_are_left_alone(
        self, release: Release, operator: OperatorProgram, store: Server, discover: list[str]
    ) -> None:
        operator.ready()
        (elsewhere,) = discover
        document = endpoints("demo-penstock-pubsub", "text-link", 7172, "10.0.0.2", store=f"{elsewhere}.demo")
        there, keeper = Seen(release.cluster, elsewhere), Keeper(store)
        there.apply(document, queue("theirs"))
        found = f"demo-penstock-pubsub.{elsewhere}.text"
        eventually(lambda: keeper.peers().get(found, ("", ()))[1] == ("10.0.0.2:7172",))
        assert "status" not in there.get("queue", "theirs")
        assert keeper.find("theirs") is None
        there.delete("endpointslice", document["metadata"]["name"])
        eventually(lambda: found not in keeper.peers())
        assert "forbidden" not in operator.text().lower()


@pytest.mark.parametrize("watch", [{"allNamespaces": True}])
def test_the_operator_does_its_work_in_all_namespaces(
    release: Release, operator: OperatorProgram, new_namespace: Callable[..., str]
) -> None:
    """Also in one that is made later. What it finds of its own edges is in its own."""
    assert operator.environment["PENSTOCK_OPERATOR_NAMESPACES"] == "*"
    operator.ready()
    release.cluster.apply([_slice(release, "rqp", {"name": "rqp-cast", "port": 11312, "protocol": "UDP"})])
    for seen in (Seen(release.cluster, release.namespace), Seen(release.cluster, new_namespace())):
        name = f"orders-{seen.namespace}"
        seen.apply(queue(name, deletionPolicy="Delete"), peer(name), redrive("again", name))
        for kind in ("queue", "peer"):
            seen.becomes(kind, name, "True", "Declared")
        seen.becomes("redrive", "again", "True", "Complete")
        assert seen.events(name)
        seen.delete("queue", name, 30)
    data = {"rqprc": "10.1.2.3:11312\n"}
    eventually(lambda: release.get("configmap", f"{NAME}-rqprc").get("data") == data)
    assert "forbidden" not in operator.text().lower()
    assert operator.stop() == 0


def test_finalizers_go_though_the_operator_is_off_and_a_namespace_is_watched_no_more(
    api_server: ApiServer, release: Release, new_namespace: Callable[..., str], tmp_path: Path
) -> None:
    """docs/chart.md, "Uninstall"."""
    former = new_namespace()
    release.install(nested("operator.watch.namespaces", [release.namespace, former]))
    metadata = {"name": "orders", "finalizers": [FINALIZER]}
    queue = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": metadata}
    for namespace in (release.namespace, former):
        release.cluster.apply([queue], "--namespace", namespace)
    off = {"enabled": False, "uninstallHook": {"namespaces": [former]}}
    release.upgrade({"operator": off})
    _uninstalled(api_server, release, tmp_path)
    for namespace in (release.namespace, former):
        assert "deleted" in release.cluster.kubectl("delete", "queue/orders", "--namespace", namespace)


def test_a_watched_namespace_that_is_gone_keeps_no_release_from_going(
    api_server: ApiServer, release: Release, tmp_path: Path
) -> None:
    """docs/chart.md, "Uninstall": those that come after it are seen to all the same."""
    cluster = release.cluster
    gone = make_namespace(cluster)
    release.install(nested("operator.watch.namespaces", [gone, release.namespace]))
    metadata = {"name": "orders", "finalizers": [FINALIZER]}
    orders = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": metadata}
    cluster.apply([orders], "--namespace", release.namespace)
    remove_namespace(cluster, gone)
    done = _uninstalled(api_server, release, tmp_path)
    assert f"queues of {gone} are left as they are" in done.stderr
    assert not release.get("queue", "orders")["metadata"].get("finalizers")
    assert RELEASE not in cluster.helm("list", "--namespace", release.namespace)


def _uninstalled(api_server: ApiServer, release: Release, folder: Path) -> subprocess.CompletedProcess[str]:
    """By helm, while the hook's Job is run as its pod would; what that said."""
    leaving = release.begin_uninstall()
    try:
        job = eventually(lambda: _job(release))
        done = _as_the_pod(api_server, release, job, folder)
        assert done.returncode == 0, done
        for each in release.cluster.items("deployments", release.namespace):
            assert each["spec"]["replicas"] == 0 or not each["metadata"]["name"].endswith("-operator")
        _complete(release)
        said, _ = leaving.communicate(timeout=120)
    finally:
        leaving.kill()
        leaving.wait()
    assert leaving.returncode == 0, said
    assert release.objects() == []
    return done


def test_the_operator_lets_go_when_its_namespace_goes(release: Release, operator: OperatorProgram) -> None:
    """docs/chart.md, "Uninstall": its pod is ended before its Queues and its rights are."""
    operator.ready()
    cluster, where = release.cluster, ("--namespace", release.namespace)
    cluster.apply([queue("orders", deletionPolicy="Delete")], *where)
    eventually(lambda: release.get("queue", "orders")["metadata"].get("finalizers"))
    cluster.kubectl("delete", "namespace", release.namespace, "--wait=false")
    assert operator.stop() == 0
    assert not release.get("queue", "orders")["metadata"].get("finalizers")


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
    role = f"{release.namespace}.{NAME}-"
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


@pytest.fixture
def tenant(api_server: ApiServer, release: Release, new_namespace: Callable[..., str]) -> Release:
    """Admin of a namespace of his own, by whatever the controller would gather in the ClusterRole `admin`."""
    release.install()
    cluster, namespace = release.cluster, new_namespace(**RESTRICTED)
    for role in cluster.items("clusterroles.rbac.authorization.k8s.io"):
        name = role["metadata"]["name"]
        if any(label in AGGREGATES for label in role["metadata"].get("labels") or ()) and name not in ROLES:
            words = (f"--clusterrole={name}", "--user=developer", "--namespace", namespace)
            cluster.kubectl("create", "rolebinding", name.replace(":", "-"), *words)
    tenant = api_server.as_user("developer")
    eventually(lambda: tenant.may("create", "roles.rbac.authorization.k8s.io", namespace))
    return Release(tenant, namespace)


ROLES = ("view", "edit", "admin")  # which have what is gathered
AGGREGATES = tuple(f"rbac.authorization.k8s.io/aggregate-to-{role}" for role in ROLES)


def test_a_tenant_installs_in_his_namespace(tenant: Release) -> None:
    """docs/chart.md, "Namespaces and rights": with definitions and aggregated roles of another release."""
    with pytest.raises(CommandFailed, match=r"customresourcedefinitions.*forbidden"):
        tenant.install()
    modest = {"crds": {"enabled": False}, "rbac": {"aggregate": False}}
    tenant.install(modest, flags=("--replace",))
    tenant.upgrade(modest, nested("edges.tmq.replicas", 3))
    assert f"role.rbac.authorization.k8s.io/{NAME}-operator" in tenant.objects()
    tenant.uninstall("--no-hooks")
    assert tenant.objects() == []
