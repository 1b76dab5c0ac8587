"""Build images with docker or, where it is missing, buildah."""

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
PREFIX = "localhost/"  # before the images' names; the address of a registry, to push them there
PUSH_TIMEOUT_S = 1200.0
LABELS = "org.opencontainers.image."  # prefix of the labels, in addition to those of the Dockerfile
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
    """An image to build: its context folder, Dockerfile, target stage and build arguments."""

    name: str
    folder: Path
    dockerfile: Path | None = None
    target: str = ""  # '' is the last stage
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def version() -> str:
    """Return the version of the project, which is the tag of the images."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def targets() -> list[str]:
    """Return the stages of the Dockerfile that have an entrypoint."""
    stages = re.split(r"^FROM ", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    named = (re.match(r"\S+ AS (\S+)", stage) for stage in stages if "\nENTRYPOINT " in stage)
    return [found[1] for found in named if found]


def image(target: str, prefix: str = PREFIX, tag: str = "", base: str = "", source: str = "") -> Image:
    """Describe an image of the Dockerfile.

    base: '' uses the base that the Dockerfile names. source: URL of the published sources, '' without one.
    """
    name = f"{prefix}penstock-{target}:{tag or version()}"
    given = {"BASE": base} if base else {}
    values = {"base.name": base or default_base(), "revision": _revision(), "source": source}
    labels = {f"{LABELS}{key}": value for key, value in values.items() if value}
    return Image(name, ROOT, target=target, arguments={"VERSION": version(), **given}, labels=labels)


def default_base() -> str:
    """Return the base image that the Dockerfile names."""
    (found,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    return str(found)


def _revision() -> str:
    """Return the commit, with `-dirty` if the tree was changed; '' outside a repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def build(wanted: Image, builder: str) -> None:
    """Build the image; the progress goes to standard error. Raises NotBuilt."""
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
    """Push the image to the registry of its name, with the credentials of an earlier login. Raises NotBuilt."""
    run(f"{builder} push", [*OWN_MOUNTS, builder, "push", name], PUSH_TIMEOUT_S)


def tag_as(name: str, other: str) -> None:
    """Add a name to an image of buildah. Raises NotBuilt."""
    buildah("tag", name, other)


def find_builder() -> str:
    """Return docker if its engine runs, else buildah. Raises NotBuilt."""
    if shutil.which("docker") and not subprocess.run(["docker", "version"], capture_output=True).returncode:
        return "docker"
    if shutil.which("buildah"):
        return "buildah"
    raise NotBuilt("neither a Docker engine nor buildah is there: apt-get install buildah")
