"""docs/chart.md, "Commands in a cluster": what runs in pods runs here, with their variables, on a real store.

The Secrets come of a release on a real API server; `kubectl exec` alone is left out, which needs a kubelet.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import NAME, Rendered, nested, render, together
from tests.chart.release import Release
from tests.chart.test_redis import ADMIN, EDGE, Pod
from tests.docs.test_chart_page import ROOT, commands, sections
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tests.servers import eventually

SECTION = sections()["Commands in a cluster"]
LINES = [line.removeprefix("$ ") for line in SECTION.splitlines() if line.startswith("$ ")]
AUTH = nested("redis.auth", {"adminPassword": ADMIN, "edgePassword": EDGE})
RENAMED = {"fullnameOverride": "penstock"}
OUTSIDE = {"redis": {"enabled": False}, "externalRedis": {"url": "redis://edge:e@penstock-redis:6379/0"}}
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
COMMAND = re.compile(r"penstock (?:dead|queue|log|ring|doctor|store|report)\b|redis-cli")


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """The chart's own Redis, as its pod would be."""
    pod = Pod(tmp_path, "redis")
    pod.start()
    try:
        eventually(pod.is_ready)
        yield pod
    finally:
        pod.end(signal.SIGKILL)


@pytest.fixture
def made(cluster: Cluster, new_namespace: Any) -> Iterator[Release]:
    released = Release(cluster, new_namespace())
    yield released
    cluster.helm("uninstall", "demo", "--namespace", released.namespace, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def test_its_commands_run_in_the_pods_that_they_name(made: Release, pod: Pod) -> None:
    own = together(AUTH, RENAMED)
    made.install(own)
    said = "".join(_run(line, made, pod, render(own)) for line in LINES if "penstock-store" not in line)
    for words in ("functions", "aof_enabled:1"):  # of the doctor, and of the server
        assert words in said, said
    admin = f"redis://admin:{ADMIN}@penstock-redis:6379/0"
    made.upgrade(RENAMED, OUTSIDE, nested("externalRedis.adminUrl", admin))
    (outside,) = [line for line in LINES if "penstock-store" in line]
    assert "functions" in _run(outside, made, pod, render(own))


def _run(line: str, made: Release, pod: Pod, rendered: Rendered) -> str:
    """What comes before the pipe by kubectl, what is after `--` as in the pod, where the server is here."""
    here = f"127.0.0.1:{pod.port}"
    given = ""
    if " | kubectl exec" in line:
        program, *words = shlex.split(line.partition(" | kubectl exec")[0])
        assert program == "kubectl"
        words[words.index("queues")] = made.namespace
        given = made.cluster.kubectl(*words).replace("penstock-redis:6379", here)
        assert f"admin:{ADMIN}@{here}" in given
    exec_words = shlex.split(line[line.index("kubectl exec") :])
    at = exec_words.index("--")
    name = exec_words[at - 1]
    container = rendered.container(
        "StatefulSet/penstock-redis" if name == "penstock-redis-0" else name.replace("deploy/", "Deployment/")
    )
    environment = {"PATH": f"{_programs(pod)}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for each in container["env"]:
        if each["name"] == "REDIS_URL":
            environment["REDIS_URL"] = pod.url("edge", EDGE)
        if each["name"] == "ADMIN_PASSWORD":
            environment["ADMIN_PASSWORD"] = ADMIN
    words = [word.replace("valkey-cli", f"redis-cli -p {pod.port}") for word in exec_words[at + 1 :]]
    if "queue" in words:  # a store that nobody has set up has none
        administrator = {**environment, "REDIS_URL": pod.url("admin", ADMIN)}
        subprocess.run(["penstock", "store", "init"], env=administrator, check=True, capture_output=True)
    done = subprocess.run(
        words, env=environment, cwd=pod.folder, input=given, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (line, done)
    assert "NOPERM" not in done.stdout + done.stderr
    assert "WRONGPASS" not in done.stdout + done.stderr
    return done.stdout


def _programs(pod: Pod) -> Path:
    """Where `penstock` is, as in the image."""
    folder = pod.folder / "bin"
    program = folder / "penstock"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m services.cli.main "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_runbooks_say_where_their_commands_run(page: Path) -> None:
    text = page.read_text()
    assert bool(COMMAND.search(text)) == ("(../chart.md#commands-in-a-cluster)" in text)


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_runbooks_name_objects_that_are_there(page: Path) -> None:
    text = page.read_text()
    there = {place.partition("/")[2] for place in render(nested("console", {"enabled": True})).objects}
    assert {f"{NAME}-{rest}" for rest in re.findall(r"<name>-([a-z-]+)", text)} <= there
    assert not re.search(r"(<release>|\bNAME|\bRELEASE)-", text)


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_runbooks_ask_by_curl_only_from_outside(page: Path) -> None:
    """No image has it (tests/images/test_content.py)."""
    for line in page.read_text().splitlines():
        assert "curl " not in line or ("kubectl port-forward" in line and "curl http://127.0.0.1:" in line)


def test_every_command_is_one_of_the_section() -> None:
    assert len(commands(SECTION)) == len(LINES) == 6
