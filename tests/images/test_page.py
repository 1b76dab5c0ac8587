"""Test docs/images.md: its commands build images, and run a container in the recommended way."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from tests.cli.shell import ANY_PORT
from tests.docs.blocks import blocks
from tests.e2e.images import Images
from tests.images.container import inspect, once, podman
from tests.images.owner import PODMAN, owner
from tests.images.registry import building, names, registry, tags
from tests.program import ROOT
from tests.servers import Server, eventually
from tools.images.build import LABELS, version
from tools.images.storage import buildah

__all__ = ["building", "registry"]

PAGE = "docs/images.md"
BUILDS, RUNS = (block.text.replace("\\\n", "") for block in blocks(PAGE) if block.is_command)
LINES = [line.partition("#")[0].strip() for line in BUILDS.splitlines()]
BASE, TEAM, HOST = "registry.example/python", "registry.example/team", "registry.example/"
USUAL = "redis://127.0.0.1:6379"


@pytest.fixture
def made() -> Iterator[set[str]]:
    """Yield the names of images before the test; names that are added in the test are removed."""
    before = names()
    yield before
    for name in names() - before:
        buildah("rmi", name)


def test_build_commands_of_the_page_work(
    images: Images, base: str, registry: str, building: dict[str, str], made: set[str]
) -> None:
    """Check each line as it is written, with a base and a registry of this machine.

    Where a line builds all images, only the edge's is built: they differ in nothing that the line could show.
    """
    digest = inspect(base)["Digest"]
    for line in LINES:
        command = line.replace(f"{BASE}@sha256:...", f"{base.rpartition(':')[0]}@{digest}").replace(
            BASE, base
        )
        command = command.replace(TEAM, f"{registry}/team").replace(HOST, f"{registry}/")
        if command.startswith(".venv/bin/python "):
            command = f"{command.replace('.venv/bin/python', sys.executable)} --base {base} --builder buildah"
        subprocess.run(command, shell=True, cwd=ROOT, env={**building, "TARGETS": "edge"}, check=True)
    wanted = {"localhost/penstock-edge:0.1.0-2", "localhost/penstock-operator:0.1.0-2"}
    own = f"localhost/penstock-edge:{version()}"
    assert wanted | {own, f"{registry}/penstock-edge:mine"} <= names()
    assert tags(registry, "team/penstock-edge") == [version()]
    labels = podman("image", "inspect", "--format", "{{.Labels}}", own)
    assert f"{LABELS}source:https://git.example/penstock" in labels


def test_how_a_container_is_best_run(images: Images, store: Server) -> None:
    once(images.of("edge"), ["penstock", "store", "init"], REDIS_URL=store.url)
    line = RUNS.replace(USUAL, store.url).replace(f"localhost/penstock-edge:{version()}", images.of("edge"))
    program, run, *words = shlex.split(line)
    assert (program, run) == ("podman", "run")
    name = f"penstock-test-{store.port}"
    ports = [f"--env={setting}={port}" for setting, port in ANY_PORT.items()]
    own = ["--detach", f"--name={name}", f"--label={owner().label}", "--pull=never", *ports]
    try:
        subprocess.run([*PODMAN, run, *own, *words], check=True, capture_output=True)
        listens = re.compile(r'"action": "health_listening".*?"port": (\d+)')
        port = eventually(lambda: listens.search(_log(name)))[1]
        eventually(lambda: urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10).status == 200)
    finally:
        podman("rm", "--force", "--time=0", "--ignore", name)


def _log(name: str) -> str:
    done = subprocess.run([*PODMAN, "logs", name], check=True, capture_output=True, text=True)
    return done.stdout + done.stderr
