"""The command of README.md, "On Kubernetes", that builds the images: it pushes them to a registry."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from services.kit.parent import die_with_parent
from tests.program import ROOT
from tests.servers import eventually, free_port
from tools.images.build import targets, version
from tools.images.storage import buildah

EXAMPLE = "registry.example/team"
INSECURE = """
[[registry]]
location = "{place}"
insecure = true
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Debian's. Images that are named after it go with it."""
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
        for name in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            if name.startswith(f"{place}/"):
                buildah("rmi", name)


def test_what_the_readme_says_builds_and_pushes(registry: str, base: str, tmp_path: Path) -> None:
    (line,) = [
        line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("make images ")
    ]
    assert EXAMPLE in line
    (tmp_path / "registries.conf").write_text(INSECURE.format(place=registry))
    environment = {
        **os.environ,
        "BASE": base,
        "BUILDER": "buildah",  # an engine of Docker's would not know the base
        "CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf"),
    }
    subprocess.run(
        line.replace(EXAMPLE, f"{registry}/team"), shell=True, cwd=ROOT, env=environment, check=True
    )
    pushed = line.partition('TARGETS="')[2].partition('"')[0].split()
    assert pushed
    assert set(pushed) < set(targets())
    for target in pushed:
        with urlopen(f"http://{registry}/v2/team/penstock-{target}/tags/list", timeout=5) as answer:
            assert json.loads(answer.read())["tags"] == [version()]
