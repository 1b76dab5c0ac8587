"""docs/runbooks/index.md: how the store gets more memory, on a real server and a real API server."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import CHART, RELEASE
from tests.chart.release import Release
from tests.docs.blocks import blocks
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tests.servers import PROGRAMS, Server

PAGE = "docs/runbooks/index.md"
LINES = [line for block in blocks(PAGE) for line in block.text.splitlines()]


@pytest.fixture
def made(cluster: Cluster, new_namespace: Any) -> Iterator[Release]:
    released = Release(cluster, new_namespace())
    yield released
    cluster.helm("uninstall", RELEASE, "--namespace", released.namespace, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def test_a_server_of_your_own_gets_more_memory(tmp_path: Path) -> None:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    try:
        asks = [line for line in LINES if line.startswith("redis-cli")]
        here = [line.replace("-h HOST", f"-h 127.0.0.1 -p {server.port}") for line in asks]
        told = [subprocess.run(["sh", "-c", line], capture_output=True, text=True) for line in here]
        assert [(each.returncode, each.stderr) for each in told] == [(0, ""), (0, "")]
        names = [line.partition(":")[0] for line in told[0].stdout.splitlines()]
        assert names == ["used_memory", "total_system_memory", "maxmemory"]
        assert server.info("memory")["maxmemory"] == str(6 << 30)
    finally:
        server.end()


def test_the_store_of_a_release_gets_more_memory(made: Release) -> None:
    made.install()
    (line,) = [line for line in LINES if line.startswith("helm upgrade")]
    given = {"RELEASE": RELEASE, "CHART": str(CHART), "NAMESPACE": made.namespace}
    program, *words = [given.get(word, word) for word in shlex.split(line)]
    assert program == "helm"
    made.cluster.helm(*words)
    limit = "{.items[*].spec.template.spec.containers[?(@.name=='redis')].resources.limits.memory}"
    stores = ("get", "statefulsets", "--namespace", made.namespace, "-o", f"jsonpath={limit}")
    assert made.cluster.kubectl(*stores).split() == ["3Gi"]
    configs = ("get", "configmaps", "--namespace", made.namespace, "-o", "yaml")
    assert "maxmemory 2gb" in made.cluster.kubectl(*configs)
