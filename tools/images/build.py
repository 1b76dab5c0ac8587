"""Builds images with what the machine has: docker, else buildah."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tools.cache import NotBuilt
from tools.command import run
from tools.images.storage import OWN_MOUNTS, buildah, kept_clean

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
PREFIX = "localhost/"  # before the images' names; a registry's address, for those who push them there
PUSH_TIMEOUT_S = 1200.0
LABELS = "org.opencontainers.image."  # and those of the Dockerfile
NO_BASE = "where a base cannot be pulled: make images-base"
BUILDERS = {
    "docker": ("docker", "build"),
    # chroot needs neither user namespaces nor a network for each step
    "buildah": (
        *OWN_MOUNTS,
        "buildah",
        "build",
        "--layers",
        "--isolation=chroot",
        "--network=host",
        "--format=oci",
    ),
}


@dataclass(frozen=True)
class Image:
    """One to build: of a folder, by the Dockerfile in it or another one, and what that is told."""

    name: str
    folder: Path
    dockerfile: Path | None = None
    target: str = ""  # '' is the last stage
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def version() -> str:
    """Of the project: the images' tag."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def targets() -> list[str]:
    """Of the Dockerfile: the stages that have an entrypoint."""
    stages = re.split(r"^FROM ", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    named = (re.match(r"\S+ AS (\S+)", stage) for stage in stages if "\nENTRYPOINT " in stage)
    return [found[1] for found in named if found]


def image(target: str, prefix: str = PREFIX, tag: str = "", base: str = "", source: str = "") -> Image:
    """base: '' is the one that the Dockerfile names. source: where its sources are published, '' nowhere."""
    name = f"{prefix}penstock-{target}:{tag or version()}"
    given = {"BASE": base} if base else {}
    told = {"base.name": base or default_base(), "revision": _revision(), "source": source}
    labels = {f"{LABELS}{key}": value for key, value in told.items() if value}
    return Image(name, ROOT, target=target, arguments={"VERSION": version(), **given}, labels=labels)


def default_base() -> str:
    """The one that the Dockerfile names."""
    (found,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    return str(found)


def _revision() -> str:
    """The commit, with `-dirty` if the tree is not quite that; '' outside a repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def build(wanted: Image, builder: str) -> None:
    """What is done is shown on stderr while it is done. Raises NotBuilt."""
    arguments = [
        word for name, value in wanted.arguments.items() for word in ("--build-arg", f"{name}={value}")
    ]
    labels = [word for name, value in wanted.labels.items() for word in ("--label", f"{name}={value}")]
    chosen = [
        *labels,
        *(["--target", wanted.target] if wanted.target else []),
        *(["--file", str(wanted.dockerfile)] if wanted.dockerfile else []),
    ]
    marked: AbstractContextManager[list[str]] = kept_clean() if builder == "buildah" else nullcontext([])
    with marked as marks:
        command = [*BUILDERS[builder], *marks, *arguments, *chosen, "--tag", wanted.name, str(wanted.folder)]
        if status := subprocess.run(command, stdout=sys.stderr).returncode:
            raise NotBuilt(f"{wanted.name}: {builder} ended with {status}; its last lines say why; {NO_BASE}")


def push(name: str, builder: str) -> None:
    """To the registry that the name begins with, as whoever logged in there. Raises NotBuilt."""
    run(f"{builder} push", [*OWN_MOUNTS, builder, "push", name], PUSH_TIMEOUT_S)


def tag_as(name: str, other: str) -> None:
    """One more name for an image of buildah's. Raises NotBuilt."""
    buildah("tag", name, other)


def find_builder() -> str:
    """Docker where its engine runs: that is where people look for their images. Raises NotBuilt."""
    if shutil.which("docker") and not subprocess.run(["docker", "version"], capture_output=True).returncode:
        return "docker"
    if shutil.which("buildah"):
        return "buildah"
    raise NotBuilt("neither a Docker engine nor buildah is there: apt-get install buildah")
