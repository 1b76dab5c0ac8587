"""A terminated run leaves nothing on a given cluster (CONTRIBUTING.md, "End to end")."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.e2e.images import Images
from tests.kubernetes.cluster import Cluster
from tests.program import ROOT
from tests.servers import eventually

TEST = "test_a_pods_log_is_read"  # waits for pods in its own namespace
END_S = 120.0


def namespaces(cluster: Cluster) -> set[str]:
    names = {each["metadata"]["name"] for each in cluster.items("namespaces")}
    return {name for name in names if name.startswith("e2e-")}


def test_sigterm_deletes_the_runs_namespaces(cluster: Cluster, images: Images) -> None:
    """Check that a run deletes its namespaces on repeated SIGTERMs to its process group, as `timeout` sends them."""
    before = namespaces(cluster)
    given = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "PENSTOCK_E2E_IMAGES": images.prefix,
        "PENSTOCK_E2E_REDIS": images.redis,
        "JUNIT": "",
        "REST": "",
        "PYTEST_ADDOPTS": f"-k {TEST} -p no:cacheprovider",
    }
    command = [str(ROOT / "tools" / "e2e"), sys.executable]
    with subprocess.Popen(command, env={**os.environ, **given}, start_new_session=True) as process:
        try:
            eventually(lambda: namespaces(cluster) - before)
            assert process.poll() is None
            for _ in range(2):
                os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(END_S) == 128 + signal.SIGTERM
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert namespaces(cluster) <= before
