"""The cluster behaves as the other tests expect (CONTRIBUTING.md, "End to end")."""

from __future__ import annotations

import json

import pytest

from protos.tmq import Dialect
from tests.e2e.conftest import NewNamespace
from tests.e2e.images import Images
from tests.e2e.node.kubelet import NAME
from tests.e2e.node.node import Node
from tests.e2e.pods import IDLE, apply, pod, redis, run_in, service, wait_ready, wait_served
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.servers import eventually
from tests.tmq.client import Client
from tools.kubernetes.programs import KUBERNETES_VERSION, NODE_VERSION

LOOK_UP = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
READY = {"httpGet": {"path": "/readyz", "port": 9161}}
STORE = "redis://store:6379"


@pytest.fixture
def edge(cluster: Cluster, images: Images, restricted: str) -> str:
    """Start a store and the TMQ edge with their Services in a namespace; return its name once both are ready."""
    listen = ("edges.tmq.listeners.document.host=0.0.0.0", "health.host=0.0.0.0")
    words = [word for setting in listen for word in ("--set", setting)]
    apply(cluster, restricted, redis("store", images.redis))
    wait_ready(cluster, restricted, "store")
    init = pod("init", images.of("edge"), args=["store", "init", "--store", STORE])
    init["spec"]["restartPolicy"] = "Never"
    serve = pod("tmq", images.of("edge"), args=["serve", "tmq", "--store", STORE, *words], ready=READY)
    apply(cluster, restricted, [init, serve, service("tmq", document=6161)])
    wait_ready(cluster, restricted, "tmq")
    return restricted


def test_the_node_is_ready_in_the_version_that_its_containerd_can_serve(node: Node) -> None:
    said = node.cluster.get("node", NAME)
    assert said["status"]["nodeInfo"]["kubeletVersion"] == f"v{NODE_VERSION}"
    assert node.is_ready
    server = json.loads(node.cluster.kubectl("version", "-o", "json"))["serverVersion"]
    assert server["gitVersion"] == f"v{KUBERNETES_VERSION}"


async def test_an_edge_in_a_restricted_pod_serves_by_its_service(
    node: Node, cluster: Cluster, edge: str
) -> None:
    """Check that messages pass between a client of the Service and the command line in the pod, both ways."""
    address = cluster.get("service", "tmq", edge)["spec"]["clusterIP"]
    wait_served(cluster, edge, "tmq", "tmq", 6161)
    async with await Client.connect((address, 6161), Dialect.DOCUMENT) as client:
        mqid = await client.queue(b"orders")
        await client.put(mqid, b"in")
        assert run_in(cluster, edge, "tmq", "penstock", "get", "orders", "--store", STORE) == "in"
        run_in(cluster, edge, "tmq", "penstock", "put", "orders", "out", "--store", STORE)
        assert await client.dnq(mqid) == b"out"


def test_a_pods_log_is_read(cluster: Cluster, edge: str) -> None:
    lines = cluster.kubectl("logs", "tmq", "--namespace", edge).splitlines()
    assert "started" in [json.loads(line).get("action") for line in lines]


def test_pod_that_violates_restricted_is_refused(cluster: Cluster, images: Images, restricted: str) -> None:
    open_to_all = pod("open", images.of("edge"))
    open_to_all["spec"]["securityContext"] = {"runAsNonRoot": False}
    with pytest.raises(CommandFailed, match='violates PodSecurity "restricted'):
        apply(cluster, restricted, [open_to_all])


def test_names_of_services_lead_to_their_addresses(
    cluster: Cluster, images: Images, new_namespace: NewNamespace
) -> None:
    here, there = new_namespace(), new_namespace()
    apply(cluster, there, redis("store", images.redis))
    apply(cluster, here, [pod("client", images.of("edge"), command=IDLE)])
    wait_ready(cluster, here, "client")
    address = cluster.get("service", "store", there)["spec"]["clusterIP"]

    def look_up(name: str) -> str:
        return run_in(cluster, here, "client", "python", "-c", LOOK_UP, name).strip()

    assert look_up(f"store.{there}") == look_up(f"store.{there}.svc.cluster.local") == address
    api = cluster.get("service", "kubernetes", "default")["spec"]["clusterIP"]
    assert look_up("kubernetes.default") == api
    with pytest.raises(CommandFailed, match="gaierror"):
        look_up("store")  # the Service is in the other namespace


def test_server_sees_the_address_of_the_pod(cluster: Cluster, images: Images, restricted: str) -> None:
    """Check that a server sees the pod's address also through a Service.

    Edges allow clients by address (docs/tmq.md, Settings).
    """
    apply(cluster, restricted, redis("store", images.redis))
    apply(cluster, restricted, [pod("client", images.redis, command=IDLE)])
    wait_ready(cluster, restricted, "client", "store")
    wait_served(cluster, restricted, "client", "store", 6379)
    said = run_in(cluster, restricted, "client", "redis-cli", "-h", "store", "client", "info")
    own = cluster.get("pod", "client", restricted)["status"]["podIP"]
    assert f" addr={own}:" in said


def test_a_service_reaches_the_pod_that_asks_it(cluster: Cluster, images: Images, restricted: str) -> None:
    apply(cluster, restricted, redis("store", images.redis))
    wait_ready(cluster, restricted, "store")
    wait_served(cluster, restricted, "store", "store", 6379)
    assert run_in(cluster, restricted, "store", "redis-cli", "-h", "store", "ping") == "PONG\n"


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "kept"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def test_a_claim_gets_a_volume_which_outlives_pods(cluster: Cluster, images: Images, restricted: str) -> None:
    """Check that a claim's volume keeps files across pods, and that fsGroup makes it writable, as on cloud volumes."""
    keeper = pod("keeper", images.of("edge"), command=IDLE, writable="/kept")
    keeper["spec"]["volumes"] = [{"name": "writable", "persistentVolumeClaim": {"claimName": "kept"}}]
    keeper["spec"]["securityContext"] = {**keeper["spec"]["securityContext"], "fsGroup": 10001}
    apply(cluster, restricted, [CLAIM, keeper])
    wait_ready(cluster, restricted, "keeper")
    run_in(cluster, restricted, "keeper", "sh", "-c", "echo still here > /kept/note")
    cluster.kubectl("delete", "pod", "keeper", "--namespace", restricted, "--grace-period=1")
    apply(cluster, restricted, [keeper])
    wait_ready(cluster, restricted, "keeper")
    assert run_in(cluster, restricted, "keeper", "cat", "/kept/note") == "still here\n"


def test_a_pod_that_is_deleted_is_replaced(cluster: Cluster, images: Images, restricted: str) -> None:
    template = pod("store", images.redis, command=("redis-server", "--dir", "/data"), writable="/data")
    spec = {
        "selector": {"matchLabels": {"app": "store"}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]},
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "store"}, "spec": spec}
    apply(cluster, restricted, [deployment])
    waited = (
        "wait",
        "--for=condition=Available",
        "deployment/store",
        "--timeout=60s",
        "--namespace",
        restricted,
    )
    cluster.kubectl(*waited)
    (first,) = [each["metadata"]["uid"] for each in cluster.items("pods", restricted)]
    cluster.kubectl("delete", "pods", "--all", "--namespace", restricted)
    eventually(lambda: first not in [each["metadata"]["uid"] for each in cluster.items("pods", restricted)])
    cluster.kubectl(*waited)


def test_a_pod_speaks_to_the_api_server_by_its_service(
    cluster: Cluster, images: Images, restricted: str
) -> None:
    """Check that a pod can call the API server with its mounted token and authority, as the operator does."""
    asks = pod("asks", images.of("operator"), command=IDLE)
    asks["spec"]["automountServiceAccountToken"] = True
    apply(cluster, restricted, [asks])
    wait_ready(cluster, restricted, "asks")
    said = json.loads(run_in(cluster, restricted, "asks", "python", "-c", ASK_API_SERVER))
    assert said["status"]["userInfo"]["username"] == f"system:serviceaccount:{restricted}:default"


ASK_API_SERVER = """
import json, ssl, urllib.request
from pathlib import Path
own = Path("/var/run/secrets/kubernetes.io/serviceaccount")
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
asked = urllib.request.Request(
    "https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews",
    json.dumps(review).encode(),
    {"Authorization": "Bearer " + (own / "token").read_text(), "Content-Type": "application/json"},
)
trusting = ssl.create_default_context(cafile=own / "ca.crt")
print(urllib.request.urlopen(asked, context=trusting).read().decode())
"""
