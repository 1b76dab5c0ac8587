"""A cluster leaves nothing on the host, however it ends (CONTRIBUTING.md, "End to end")."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import host
from tests.e2e.images import PAUSE
from tests.e2e.node.control import FLEX_VOLUMES
from tests.e2e.node.node import running
from tests.e2e.node.place import clear_away
from tests.e2e.pods import pod
from tests.program import ROOT
from tests.servers import eventually

pytestmark = pytest.mark.own_node
COMMAND = [sys.executable, "-m", "tests.e2e"]
END_S = 60.0


@pytest.fixture(autouse=True)
def clean() -> None:
    """Remove leftovers of other runs first, as a test would remove them midway."""
    clear_away()


@contextmanager
def cluster_with_a_pod() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a cluster with a pod; yield the process that holds it and its folder."""
    with subprocess.Popen([*COMMAND, "up", "--bare"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            folder = Path(_ready_line(process).removeprefix("ready: ").partition(";")[0])
            _run_a_pod(folder)
            yield process, folder
        finally:
            process.kill()
            process.wait()
            clear_away()


def _ready_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready: "):
            return line
    raise AssertionError(f"it ended with {process.wait()}")


def _run_a_pod(folder: Path) -> None:
    kubectl(folder, "apply", "--filename", "-", given=json.dumps(pod("only", PAUSE)))
    kubectl(folder, "wait", "--for=condition=Ready", "pod/only", "--timeout=60s")


def kubectl(folder: Path, *words: str, given: str = "") -> None:
    command = [*COMMAND, "run", "--in", str(folder), "kubectl", *words]
    subprocess.run(command, cwd=ROOT, input=given, text=True, check=True, capture_output=True)


def is_gone(folder: Path) -> bool:
    return not host.processes(folder.name)


def test_sigterm_leaves_nothing() -> None:
    before = host.state()
    with cluster_with_a_pod() as (process, folder):
        # shows that the search finds these processes while they run
        assert any("containerd-shim" in command for command in host.processes(folder.name))
        assert "/pause " in host.processes(folder.name)
        # in its default place it would be noticed only on a host that has never run a node
        assert (folder / FLEX_VOLUMES).is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0
        assert is_gone(folder)
        assert not folder.exists()
        host.check_it_is_as(before)


def test_killed_run_leaves_only_files() -> None:
    before = host.state()
    with cluster_with_a_pod() as (process, folder):
        process.kill()
        process.wait()
        eventually(lambda: is_gone(folder))
        unfinished = host.state()
        assert [kind for kind in before if before[kind] != unfinished[kind]] == ["control groups"]
        assert folder.exists()
        assert str(folder) in clear_away()
        assert not folder.exists()
        host.check_it_is_as(before)


def test_failed_start_leaves_nothing() -> None:
    before = host.state()
    with pytest.raises(subprocess.CalledProcessError, match="podman"), running("localhost/nobodys:1", []):
        raise AssertionError("there is no such image")
    assert clear_away() == []
    host.check_it_is_as(before)


def test_running_node_is_kept() -> None:
    with cluster_with_a_pod() as (_, folder):
        assert str(folder) not in clear_away()
        kubectl(folder, "get", "pod", "only")
