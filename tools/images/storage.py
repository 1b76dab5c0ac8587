"""The storage of buildah: what builds leave in it that nobody wants any more.

A build that is interrupted or killed leaves working containers. Each carries who had it built as a build argument that
no Dockerfile asks for, so that it makes no other image of it. And each build leaves what the one before it had made.
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

# where the storage of images is mounted, it would stay mounted; root may do without
OWN_MOUNTS = () if os.geteuid() else ("unshare", "--mount", "--propagation", "private")
OWNER = "PENSTOCK_BUILT_BY"
OURS = "label=org.opencontainers.image.vendor=Penstock"  # every stage of the Dockerfile has it
KEPT_S = 24 * 3600.0  # what has no name is the cache of the next builds
TIMEOUT_S = 120.0


def buildah(*words: str, timeout_s: float = TIMEOUT_S) -> str:
    """What it prints. Raises NotBuilt."""
    return run(f"buildah {words[0]}", [*OWN_MOUNTS, "buildah", *words], timeout_s)


@contextmanager
def kept_clean() -> Iterator[list[str]]:
    """Words for a build within it; what it, killed ones and old ones leave is gone afterwards. Raises NotBuilt."""
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
    """Working containers, and who had them built."""
    root = Path(buildah("info", "--format", "{{.store.GraphRoot}}").strip())
    for state in root.glob("*-containers/*/userdata/buildah.json"):
        with suppress(OSError, ValueError):  # it comes or goes just now
            told = json.loads(state.read_text("utf-8"))
            if owner := (told.get("Args") or {}).get(OWNER):
                yield told["container-id"], owner


def _owner(pid: int | str = "self") -> str:
    """A process: its number and when it began, as numbers are used again. Raises OSError if it has ended."""
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    return f"{stat.partition(' ')[0]}-{stat.rpartition(')')[2].split()[19]}"


def _lives(owner: str) -> bool:
    with suppress(OSError):
        return _owner(owner.partition("-")[0]) == owner
    return False


def remove_old(ours: str = OURS, kept_s: float = KEPT_S) -> None:
    """Of images that have no name any more. What another one is made of, or a build uses, is not removed."""
    found = json.loads(buildah("images", "--json", "--filter", "dangling=true", "--filter", ours) or "null")
    for image in found or ():
        if time.time() - image["created"] > kept_s:
            with suppress(NotBuilt):
                buildah("rmi", image["id"])
