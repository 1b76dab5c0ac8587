"""Run a registry on this machine, and `make images` with it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually, free_port
from tools.images.storage import buildah

INSECURE = """
[[registry]]
location = "{place}"
insecure = true
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Yield Debian's registry, and remove the images that are named after it at the end."""
    place = f"127.0.0.1:{free_port()}"
    configuration = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
        "http": {"addr": place},
    }
    (tmp_path / "registry.json").write_text(json.dumps(configuration))
    command = ["docker-registry", "serve", str(tmp_path / "registry.json")]
    with (tmp_path / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, preexec_fn=partial(die_with_parent, os.getpid())
        )
    try:
        eventually(lambda: urlopen(f"http://{place}/v2/", timeout=5).status == 200)
        yield place
    finally:
        process.kill()
        process.wait()
        for name in names():
            if name.startswith(f"{place}/"):
                buildah("rmi", name)


@pytest.fixture
def building(registry: str, base: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of `make images` with a base of the tests and a registry without TLS."""
    (tmp_path / "registries.conf").write_text(INSECURE.format(place=registry))
    return {
        **os.environ,
        "BASE": base,
        "BUILDER": "buildah",  # Docker would not know the base
        "CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf"),
    }


def names() -> set[str]:
    """Return the names of all images that have one."""
    return set(buildah("images", "--format", "{{.Name}}:{{.Tag}}").split())


def tags(place: str, repository: str) -> list[str]:
    with urlopen(f"http://{place}/v2/{repository}/tags/list", timeout=5) as answer:
        found: list[str] = json.loads(answer.read())["tags"]
    return found
