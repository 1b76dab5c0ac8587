"""Test that containers end with the run that made them, and with no other (CONTRIBUTING.md, End to end)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.images import Images
from tests.images.container import podman
from tests.images.owner import PREFIX, remove_leftovers
from tests.program import ROOT
from tests.servers import eventually

# another run: it starts a container, prints its name, and waits
RUN = """
import sys
from pathlib import Path
from tests.cli.shell import ANY_PORT
from tests.images.container import Container

environment = {**ANY_PORT, "REDIS_URL": "redis://127.0.0.1:1"}
with Container(sys.argv[1], Path(sys.argv[2]), "serve", "tmq", environment=environment) as made:
    print(made.name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_run(images: Images, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield another run's process and the name of its container."""
    command = [sys.executable, "-c", RUN, images.of("edge"), str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def is_there(name: str) -> bool:
    return bool(podman("ps", "--all", "--quiet", "--filter", f"name={name}"))


def watcher(name: str) -> int:
    """Return the process id of the watcher of the run that started a container."""
    lock = podman("inspect", "--format", '{{index .Config.Labels "dev.penstock.test"}}', name).strip()
    assert lock.startswith(PREFIX)
    found = subprocess.run(["pgrep", "--full", f"owner.py .*{lock}"], capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_container_ends_with_a_run_that_is_killed(
    images: Images, tmp_path: Path, how: signal.Signals
) -> None:
    with another_run(images, tmp_path) as (process, name):
        assert is_there(name)
        process.send_signal(how)
        process.wait()
        eventually(lambda: not is_there(name))


def test_next_run_removes_containers_of_a_killed_run(images: Images, tmp_path: Path) -> None:
    with another_run(images, tmp_path) as (process, name):
        os.kill(watcher(name), signal.SIGKILL)
        process.kill()
        process.wait()
        assert is_there(name)
        remove_leftovers()
        assert not is_there(name)


def test_containers_of_another_run_that_lives_stay(images: Images, tmp_path: Path) -> None:
    with another_run(images, tmp_path) as (_, name):
        remove_leftovers()
        assert podman("ps", "--quiet", "--filter", f"name={name}", "--filter", "status=running")
