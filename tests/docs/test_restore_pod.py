"""Check docs/backup.md, "Onto the volume of the chart's store".

The helper pod is admitted and sees the store's files, and the commands restore a copy on a server that runs as in the
chart.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.chart import render
from tests.chart.redis_pod import ADMIN, EDGE, Pod
from tests.cli.shell import Shell
from tests.docs.bench import commands, words
from tests.docs.blocks import blocks
from tests.kubernetes.cluster import Cluster
from tests.servers import eventually
from tests.tmq.process import ROOT

PAGE, FILE = "docs/backup.md", "docs/examples/kubernetes/restore.yaml"
SECTION = "## Onto the volume of the chart's store"
COPY = "## Copy the chart's own store"
IN_POD = re.compile(r"kubectl exec (?:--stdin )?(?:--namespace queues )?(?:restore|penstock-redis-0) -- ")
POD = yaml.safe_load((ROOT / FILE).read_text())


def test_the_page_shows_it() -> None:
    assert f"# {FILE}\n{(ROOT / FILE).read_text()}```\n" in (ROOT / PAGE).read_text()


def test_restore_pod_has_user_and_claim_of_the_store() -> None:
    store = render({"fullnameOverride": "penstock"})["StatefulSet/penstock-redis"]["spec"]
    (template,) = store["volumeClaimTemplates"]
    (volume,) = POD["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == f"{template['metadata']['name']}-penstock-redis-0"
    own = store["template"]["spec"]
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        assert POD["spec"]["securityContext"][name] == own["securityContext"][name]
    (container,) = own["containers"][:1]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == template["metadata"]["name"]]
    assert POD["spec"]["containers"][0]["volumeMounts"] == [mount]
    assert POD["spec"]["containers"][0]["image"] == container["image"]


def test_restore_pod_meets_pod_security_restricted(cluster: Cluster, restricted: str) -> None:
    output = cluster.kubectl("apply", "--namespace", restricted, "--filename", str(ROOT / FILE))
    assert "pod/restore created" in output


def test_its_commands_name_it() -> None:
    (block,) = [each for each in blocks(PAGE) if each.first.startswith("kubectl apply")]
    lines = [line for line in block.text.splitlines() if line.startswith("$ ")]
    assert len(lines) == 5
    assert FILE in lines[0]
    assert all(POD["metadata"]["name"] in line.split() or "pod/restore" in line for line in lines[1:])
    (mount,) = POD["spec"]["containers"][0]["volumeMounts"]
    assert all(mount["mountPath"] in line for line in lines if " exec " in line)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Pod]:
    """Yield the chart's pod, with a folder as its volume."""
    (tmp_path / "pod").mkdir()
    pod = Pod(tmp_path / "pod", "redis")
    start(pod)
    yield pod
    pod.end(signal.SIGKILL)


def start(pod: Pod) -> None:
    pod.start()
    eventually(pod.is_ready)


def test_its_commands_bring_a_copy_back(store: Pod, tmp_path: Path) -> None:
    """Check that the commands for pods restore a copy in the folder of the volume; kubectl itself is not run."""
    admin = Shell(tmp_path, {"REDIS_URL": store.url("admin", ADMIN)})
    edge = Shell(tmp_path, {"REDIS_URL": store.url("edge", EDGE)})
    admin.run("store", "init")
    edge.run("queue", "create", "orders")
    edge.run("put", "orders", "one")
    edge.run("put", "orders", "two")
    for command in commands(PAGE, COPY):
        printed = run_in_pod(store, tmp_path, command.line)
        assert words(printed) == words(command.shown), command.line
    edge.run("put", "orders", "three")
    edge.run("get", "orders")
    edge.run("queue", "create", "later")
    store.end()  # `kubectl scale statefulset penstock-redis --replicas=0`
    for command in commands(PAGE, SECTION):
        if IN_POD.match(command.line):
            run_in_pod(store, tmp_path, command.line)
    start(store)
    assert "FAIL" not in admin.run("doctor").text
    assert b"later" not in edge.run("queue", "list").out
    assert [edge.run("get", "orders").out for _ in range(2)] == [b"one", b"two"]
    assert (tmp_path / "pod" / "data" / "appendonlydir.broken").is_dir()


def run_in_pod(pod: Pod, folder: Path, command: str) -> str:
    inside = IN_POD.sub("", command).replace("/data", str(pod.folder / "data"))
    inside = inside.replace("valkey-cli", f"redis-cli -p {pod.port}")
    own = {**os.environ, "ADMIN_PASSWORD": ADMIN}
    return subprocess.run(
        inside, shell=True, cwd=folder, check=True, env=own, stdout=subprocess.PIPE, text=True
    ).stdout
