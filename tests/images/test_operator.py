"""The image of the operator: it sees to Queues as the process of tests/operator does (docs/images.md)."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.e2e.images import Images
from tests.images.container import Container
from tests.kubernetes.cluster import Cluster
from tests.servers import Server, eventually, free_port

KUBECONFIG = "/kubernetes/config"
QUEUE = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "orders"}, "spec": {}}


def operator(
    images: Images, folder: Path, cluster: Cluster, namespace: str, store: Server, port: int
) -> Container:
    """In a container, with the rights of an administrator."""
    shutil.copyfile(cluster.kubeconfig, folder / "kubeconfig")
    environment = {
        "KUBECONFIG": KUBECONFIG,
        "PENSTOCK_STORE__URL": store.url,
        "POD_NAMESPACE": namespace,
        "PENSTOCK_OPERATOR_NAMESPACES": namespace,
        "PENSTOCK_OPERATOR_HEALTH_PORT": str(port),
    }
    files = {KUBECONFIG: folder / "kubeconfig"}
    return Container(images.of("operator"), folder, environment=environment, files=files)


def is_ready(port: int) -> bool:
    """Raises OSError while nobody answers."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False


def test_it_gets_ready_declares_a_queue_and_ends_with_0(
    images: Images, tmp_path: Path, defined: Cluster, namespace: str, store: Server
) -> None:
    port = free_port()
    with operator(images, tmp_path, defined, namespace, store, port) as container:
        eventually(lambda: is_ready(port))
        defined.apply([QUEUE], "--namespace", namespace)
        waited = ("--for=condition=Ready", "queue.penstock.dev/orders", "--timeout=20s")
        defined.kubectl("wait", *waited, "--namespace", namespace)
        assert container.run("sh", "-c", "grep ^Uid: /proc/1/status").split() == ["Uid:", *["10001"] * 4]
        assert container.terminate() == 0, container.log()
