"""The operator's permissions in the chart suffice: docs/chart.md, "Namespaces and rights"."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from penstock_operator.documents.declared import FINALIZER

from services.system.pdeathsig import die_with_parent
from tests.chart.chart import NAME, RELEASE, Values, nested
from tests.chart.release import Release, queue_of
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.namespaces import make_namespace, remove_namespace
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


def _environment(container: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.fixture
def run(
    api_server: ApiServer, release: Release, store: Server, tmp_path: Path
) -> Iterator[Callable[..., OperatorProgram]]:
    """Run the operator as in its pod: with the permissions and the environment of the chart."""
    made: list[OperatorProgram] = []

    def start(*values: Values) -> OperatorProgram:
        release.install(*values)
        account = api_server.as_service_account(release.namespace, f"{NAME}-operator")
        deployment = release.get("deployment", f"{NAME}-operator")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        prefix = "PENSTOCK_OPERATOR_"
        settings = {
            name.removeprefix(prefix).lower(): value
            for name, value in _environment(container).items()
            if name.startswith(prefix) and name != f"{prefix}HEALTH_PORT"
        }
        own_store = settings.pop("store")
        program = OperatorProgram(account, store.url, tmp_path, **settings)
        program.environment |= {"PENSTOCK_OPERATOR_STORE": own_store, "POD_NAMESPACE": release.namespace}
        made.append(program)
        return program.start().ready()

    yield start
    for program in made:
        if program.process is not None and program.process.is_alive():
            program.kill()


def _slice(release: Release, edge: str, port: dict[str, Any]) -> dict[str, Any]:
    """Return an EndpointSlice as the controller would create it for an edge's Service."""
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


def test_rights_of_the_chart_suffice_for_the_operator(
    api_server: ApiServer,
    release: Release,
    run: Callable[..., OperatorProgram],
    store: Server,
    new_namespace: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Check the operator and then the hook's Job with the rights of the chart.

    The Queue of NOTES becomes Ready, and edges are found, also those of another release, whose resources stay
    unchanged (docs/kubernetes.md, "Discovery").
    """
    elsewhere = new_namespace()
    operator = run(nested("operator.discover.namespaces", [elsewhere]))
    cluster, namespace = release.cluster, release.namespace
    document = endpoints("demo-penstock-pubsub", "text-link", 7172, "10.0.0.2", store=f"{elsewhere}.demo")
    there, keeper = Seen(cluster, elsewhere), Keeper(store)
    there.apply(document, queue("theirs"))
    own = _slice(release, "rqp", {"name": "rqp-cast", "port": 11312, "protocol": "UDP"})
    cluster.apply([own, yaml.safe_load(queue_of(release.notes()))], "--namespace", namespace)
    release.wait("queue/orders", "condition=Ready")
    release.wait(f"configmap/{NAME}-rqprc", "jsonpath={.data.rqprc}=10.1.2.3:11312\n")
    release.wait(f"configmap/{NAME}-dataset", "jsonpath={.data.dataset}")
    found = f"demo-penstock-pubsub.{elsewhere}.text"
    eventually(lambda: keeper.peers().get(found, ("", ()))[1] == ("10.0.0.2:7172",))
    assert "status" not in there.get("queue", "theirs")
    assert keeper.find("theirs") is None
    there.delete("endpointslice", document["metadata"]["name"])
    eventually(lambda: found not in keeper.peers())
    assert "forbidden" not in operator.text().lower()

    done = _uninstalled(api_server, release, tmp_path)
    assert "uninstall_cut" not in done.stderr, done
    (orders,) = cluster.items("queues", namespace)
    assert not orders["metadata"].get("finalizers")


def test_cluster_wide_rights_suffice_for_the_operator(
    release: Release, run: Callable[..., OperatorProgram], new_namespace: Callable[..., str]
) -> None:
    """Check this also in a namespace created later; the operator's pod ends before its Queues and rights."""
    operator = run(nested("operator.watch.allNamespaces", True), nested("edgeDefaults.bindAddress", "::"))
    assert operator.environment["PENSTOCK_OPERATOR_NAMESPACES"] == "*"
    with urlopen(f"http://[::1]:{operator.port}/healthz", timeout=5) as answer:  # already reached over IPv4
        assert answer.status == 200
    for seen in (Seen(release.cluster, release.namespace), Seen(release.cluster, new_namespace())):
        name = f"orders-{seen.namespace}"
        seen.apply(queue(name, deletionPolicy="Delete"), peer(name), redrive("again", name))
        for kind in ("queue", "peer"):
            seen.becomes(kind, name, "True", "Declared")
        seen.becomes("redrive", "again", "True", "Complete")
        assert seen.events(name)
        seen.delete("queue", name)
    assert "forbidden" not in operator.text().lower()
    own = Seen(release.cluster, release.namespace)
    own.apply(queue("orders", deletionPolicy="Delete"))
    release.wait("queue/orders", "jsonpath={.metadata.finalizers}")
    release.cluster.kubectl("delete", "namespace", release.namespace, "--wait=false")
    assert operator.stop() == 0
    assert not own.get("queue", "orders")["metadata"].get("finalizers")


def test_hook_removes_finalizers_without_operator_and_namespace(
    api_server: ApiServer, release: Release, new_namespace: Callable[..., str], tmp_path: Path
) -> None:
    """Check that the hook also handles namespaces after a deleted one (docs/chart.md, "Uninstall")."""
    cluster, former, gone = release.cluster, new_namespace(), make_namespace(release.cluster)
    release.install(nested("operator.watch.namespaces", [release.namespace, gone, former]))
    own = [Seen(cluster, release.namespace), Seen(cluster, former)]
    for seen in own:
        orders = queue("orders")
        orders["metadata"]["finalizers"] = [FINALIZER]
        seen.apply(orders)
    release.upgrade({"operator": {"enabled": False, "uninstallHook": {"namespaces": [gone, former]}}})
    remove_namespace(cluster, gone)
    done = _uninstalled(api_server, release, tmp_path)
    assert f"queues of {gone} were skipped" in done.stderr
    assert [seen.get("queue", "orders")["metadata"].get("finalizers") for seen in own] == [None, None]
    assert RELEASE not in cluster.helm("list", "--namespace", release.namespace)


def _uninstalled(api_server: ApiServer, release: Release, folder: Path) -> subprocess.CompletedProcess[str]:
    """Uninstall with helm while the hook's Job runs as in its pod; return the Job's output."""
    leaving = release.begin_uninstall()
    try:
        job = eventually(lambda: _job(release))
        done = _as_the_pod(api_server, release, job, folder)
        assert done.returncode == 0, done
        for each in release.cluster.items("deployments", release.namespace):
            assert each["spec"]["replicas"] == 0 or not each["metadata"]["name"].endswith("-operator")
        _complete(release)
        output, _ = leaving.communicate(timeout=120)
    finally:
        leaving.kill()
        leaving.wait()
    assert leaving.returncode == 0, output
    assert release.objects() == []
    return done


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
        **_environment(container),
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
    """Mark the Job as complete, as its controller does."""
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
