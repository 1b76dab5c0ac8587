"""Test the image of the operator: it declares Queues like the process of tests/operator (docs/images.md)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.e2e.images import Images
from tests.images.container import NAMELESS, STARTING_S, Container, started, stopped
from tests.kubernetes.cluster import Cluster
from tests.servers import Server, eventually, free_port

KUBECONFIG = "/kubernetes/config"
QUEUE = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "orders"}, "spec": {}}


def operator_setup(
    folder: Path, cluster: Cluster, namespace: str, store_url: str, port: int
) -> tuple[dict[str, str], dict[str, Path]]:
    """Return environment and files for an operator with an administrator's rights."""
    shutil.copyfile(cluster.kubeconfig, folder / "kubeconfig")
    (folder / "kubeconfig").chmod(0o644)
    environment = {
        "KUBECONFIG": KUBECONFIG,
        "PENSTOCK_STORE__URL": store_url,
        "POD_NAMESPACE": namespace,
        "PENSTOCK_OPERATOR_NAMESPACES": namespace,
        "PENSTOCK_OPERATOR_HEALTH_PORT": str(port),
    }
    return environment, {KUBECONFIG: folder / "kubeconfig"}


def is_ready(port: int) -> bool:
    """Return whether the operator is ready. Raises OSError while the port is closed."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except HTTPError as refusal:
        refusal.close()
        return False


@pytest.mark.parametrize(("user", "flags"), [(10001, ()), (123456, NAMELESS)])
def test_operator_declares_a_queue_and_exits_with_0(
    images: Images,
    tmp_path: Path,
    defined: Cluster,
    namespace: str,
    store: Server,
    user: int,
    flags: Sequence[str],
) -> None:
    store.clear()
    port = free_port()
    environment, files = operator_setup(tmp_path, defined, namespace, store.url, port)
    with Container(
        images.of("operator"), tmp_path, environment=environment, files=files, flags=flags
    ) as container:
        eventually(lambda: is_ready(port))
        defined.apply([QUEUE], "--namespace", namespace)
        waited = ("--for=condition=Ready", "queue.penstock.dev/orders", "--timeout=20s")
        defined.kubectl("wait", *waited, "--namespace", namespace)
        assert container.run("sh", "-c", "grep ^Uid: /proc/1/status").split() == ["Uid:", *[str(user)] * 4]
        assert container.terminate() == 0, container.log()


@pytest.mark.parametrize("after_s", STARTING_S)
def test_sigterm_during_startup_exits_with_0(
    images: Images, tmp_path: Path, defined: Cluster, namespace: str, store: Server, after_s: float
) -> None:
    environment, files = operator_setup(tmp_path, defined, namespace, store.url, free_port())
    with started(images.of("operator"), environment=environment, files=files) as name:
        assert stopped(name, after_s) == 0
