"""Remove leftovers of builds from the storage of buildah.

An interrupted build leaves working containers. Each carries its owner as a build argument that no Dockerfile uses, so
that the argument does not change the image. Each build also leaves the layers of the previous one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.cache import NotBuilt
from tools.command import run

# otherwise mounts of the images' storage would remain; root needs no namespace
OWN_MOUNTS = () if os.geteuid() else ("unshare", "--mount", "--propagation", "private")
OWNER = "PENSTOCK_BUILT_BY"
OURS = "label=org.opencontainers.image.vendor=Penstock"  # every stage of the Dockerfile has it
KEPT_S = 24 * 3600.0  # images without a name are the cache of later builds
TIMEOUT_S = 120.0


def buildah(*words: str, timeout_s: float = TIMEOUT_S) -> str:
    """Run buildah and return its standard output. Raises NotBuilt."""
    return run(f"buildah {words[0]}", [*OWN_MOUNTS, "buildah", *words], timeout_s)


@contextmanager
def kept_clean() -> Iterator[list[str]]:
    """Yield arguments for a build, and afterwards remove leftovers of it, killed and old builds. Raises NotBuilt."""
    own = _owner()
    try:
        yield ["--build-arg", f"{OWNER}={own}"]
    finally:
        _remove_working(own)
        remove_old()


def _remove_working(own: str) -> None:
    for container, owner in _working():
        if owner == own or not _lives(owner):
            buildah("rm", container)


def _working() -> Iterator[tuple[str, str]]:
    """Yield the working containers with their owners."""
    root = Path(buildah("info", "--format", "{{.store.GraphRoot}}").strip())
    for state in root.glob("*-containers/*/userdata/buildah.json"):
        with suppress(OSError, ValueError):  # it is being created or removed
            container = json.loads(state.read_text("utf-8"))
            if owner := (container.get("Args") or {}).get(OWNER):
                yield container["container-id"], owner


def _owner(pid: int | str = "self") -> str:
    """Return the id and the start time of a process: ids are reused. Raises OSError if the process has ended."""
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    return f"{stat.partition(' ')[0]}-{stat.rpartition(')')[2].split()[19]}"


def _lives(owner: str) -> bool:
    with suppress(OSError):
        return _owner(owner.partition("-")[0]) == owner
    return False


def remove_old(ours: str = OURS, kept_s: float = KEPT_S) -> None:
    """Remove images without a name unless another image or a build uses them."""
    found = json.loads(buildah("images", "--json", "--filter", "dangling=true", "--filter", ours) or "null")
    for image in found or ():
        if time.time() - image["created"] > kept_s:
            with suppress(NotBuilt):
                buildah("rmi", image["id"])
