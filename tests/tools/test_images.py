"""Test which targets of the Dockerfile are built, and by which engine. `make e2e` builds and runs the images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cache import NotBuilt
from tools.images import base
from tools.images.build import DOCKERFILE, ROOT, find_builder, image, targets, version

INSTALL = ROOT / "tools" / "images" / "install.sh"
# A program that prints its arguments; an engine that runs answers `version`.
RUNS = '#!/bin/sh\n[ "$1" = version ] && exit 0\necho "$0" "$@"\n'
HAS_NO_ENGINE = '#!/bin/sh\n[ "$1" = version ] && exit 1\necho "$0" "$@"\n'
FAILS = '#!/bin/sh\n[ "$1" = version ] && exit 0\nexit 7\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a machine with few programs; return their folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def images(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.images", *words]
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)


def test_docker_is_taken_where_its_engine_runs_else_buildah(machine: Path) -> None:
    install(machine, "buildah", RUNS)
    assert find_builder() == "buildah"
    install(machine, "docker", HAS_NO_ENGINE)
    assert find_builder() == "buildah"
    install(machine, "docker", RUNS)
    assert find_builder() == "docker"


def test_missing_build_engine_is_reported_in_one_line(machine: Path) -> None:
    done = images("edge")
    assert (done.returncode, done.stderr) == (
        1,
        "penstock: neither a Docker engine nor buildah is there: apt-get install buildah\n",
    )


def test_every_target_is_built_with_the_projects_version_on_the_base_that_is_given(machine: Path) -> None:
    install(machine, "docker", RUNS)
    source = "https://git.test/penstock"
    done = images("--base", "base:1", "--prefix", "registry.test/", "--source", source)
    asked = [line.split(" ", 1)[1] for line in done.stderr.splitlines()]
    arguments = f"--build-arg VERSION={version()} --build-arg BASE=base:1"
    values = {"base.name": "base:1", "source": source}  # no revision, as this machine has no git
    labels = " ".join(f"--label org.opencontainers.image.{name}={value}" for name, value in values.items())
    assert asked == [
        f"build {arguments} {labels} --target {target} --tag registry.test/penstock-{target}:{version()} {ROOT}"
        for target in targets()
    ]


def test_labels_name_the_default_base_and_the_commit() -> None:
    labels = image("edge").labels
    assert f"\nARG BASE={labels['org.opencontainers.image.base.name']}\n" in DOCKERFILE.read_text()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    assert labels["org.opencontainers.image.revision"].removesuffix("-dirty") == commit
    assert "org.opencontainers.image.source" not in labels


def test_a_build_that_fails_ends_with_1(machine: Path) -> None:
    install(machine, "docker", FAILS)
    done = images("edge")
    assert done.returncode == 1
    said = "docker ended with 7; its last lines say why; where a base cannot be pulled: make images-base"
    assert done.stderr == f"penstock: {image('edge').name}: {said}\n"


def test_a_target_that_is_not_there_is_refused() -> None:
    done = images("edg")
    assert done.returncode == 2
    assert "no such target: edg" in done.stderr


def test_the_dockerfile_takes_nothing_without_a_hash_and_ends_with_the_edge() -> None:
    assert targets()[-1] == "edge"  # the result of a build without --target
    text = DOCKERFILE.read_text() + INSTALL.read_text()
    installs = re.findall(r"\bpip install (.*)| pip (-.*) ;;", text)
    assert len(installs) == 3
    for words in map("".join, installs):
        assert "--require-hashes" in words or "--no-deps --no-index" in words


def test_the_base_of_the_dockerfile_has_a_whole_version() -> None:
    (named,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert re.fullmatch(r"\S+:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", named)


def test_docs_name_the_programs_a_base_needs() -> None:
    """Check that the docs name the programs that stages on the base run; `rm` and a shell are always present."""
    stages = re.split(r"^FROM ", DOCKERFILE.read_text(), flags=re.MULTILINE)
    runs = [
        run
        for stage in stages
        if stage.startswith("${BASE}")
        for run in re.findall(r"^RUN ((?:.*\\\n)*.*)", stage, re.M)
    ]
    words = {part.split()[0] for run in runs for part in re.split(r" && ", run)}
    needed = {word for word in words if not word.startswith("/")} - {"rm"}
    assert needed >= {"groupadd", "useradd", "find", "python3"}
    page = (ROOT / "docs" / "images.md").read_text()
    (said,) = re.findall(r"^A base has .*?\n\n", page, re.MULTILINE | re.DOTALL)
    for text in (said, DOCKERFILE.read_text().partition("ARG BASE")[0]):
        assert not {word for word in needed if f"`{word}`" not in text}


def test_the_dockerfile_by_itself_knows_the_version() -> None:
    """Check the Dockerfile's default version, as `docker build` and skaffold pass none."""
    assert f"\nARG VERSION={version()}\n" in DOCKERFILE.read_text("utf-8")


def test_another_machines_base_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = base.machine()
    monkeypatch.setattr(base, "AUTHORITIES", tmp_path / "others.crt")
    (tmp_path / "others.crt").write_text("others")
    assert base.machine() != first


def test_failed_base_gives_the_reason(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(machine / "cache"))
    install(machine, "unshare", '#!/bin/sh\nshift 3\nexec "$@"\n')
    with pytest.raises(NotBuilt, match=r"buildah images: .*buildah: not found"):
        base.base()
    install(machine, "buildah", "#!/bin/sh\n")  # it has no image
    with pytest.raises(NotBuilt, match=r"debootstrap: .*debootstrap: not found"):
        base.base()
