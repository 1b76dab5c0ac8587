"""Where a node keeps everything: a folder, and control groups of the same name.

Whoever made it holds a lock in it, which the kernel takes back however they end. So what a dead run left is known, and
the next one clears it away.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

from tests.servers import eventually

PREFIX = "penstock-node-"
CGROUPS = Path("/sys/fs/cgroup")
LOCK = "lock"


class Place:
    def __init__(self, folder: Path, lock: IO[str]) -> None:
        self.folder = folder
        self._lock = lock

    @classmethod
    def make(cls) -> Self:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = (folder / LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = cls(folder, lock)
        for hierarchy in _hierarchies():
            (hierarchy / folder.name).mkdir()
        return place

    @property
    def cgroup(self) -> str:
        """As the kubelet names it: from the root of each hierarchy."""
        return f"/{self.folder.name}"

    def subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def tell(self, kubeconfig: Path) -> None:
        """Whoever looks for a node finds this: whose network it is, and how to speak to it."""
        self._lock.write(json.dumps({"pid": os.getpid(), "kubeconfig": str(kubeconfig)}))
        self._lock.flush()

    def remove(self) -> None:
        """Every process in it has ended. Raises AssertionError when one has not, OSError when something is mounted."""
        with self._lock:
            for hierarchy in _hierarchies():
                _remove_cgroup(hierarchy / self.folder.name)
            shutil.rmtree(self.folder)


def clear_away() -> list[str]:
    """Removes what dead runs left; their folders."""
    gone = []
    for place in _abandoned():
        place.remove()
        gone.append(str(place.folder))
    return gone


def told() -> dict[Path, dict[str, Any]]:
    """What nodes that live told, by folder, the youngest first."""
    locks = sorted(
        Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"), key=lambda path: -path.stat().st_mtime
    )
    return {path.parent: json.loads(text) for path in locks if (text := path.read_text("utf-8"))}


def _abandoned() -> Iterator[Place]:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = (folder / LOCK).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()  # somebody's node, who lives
        else:
            yield Place(folder, lock)


def _hierarchies() -> list[Path]:
    """One with version 2 of control groups; with version 1 one for each controller."""
    if (CGROUPS / "cgroup.procs").exists():
        return [CGROUPS]
    folders = (path for path in CGROUPS.iterdir() if not path.is_symlink())
    return [path for path in folders if (path / "cgroup.procs").exists()]


def _remove_cgroup(group: Path) -> None:
    """With all below it. The files in them are the kernel's, and go with them."""
    if not group.exists():
        return
    for path, _, _ in os.walk(group, topdown=False):
        eventually(partial(_is_removed, path))


def _is_removed(group: str) -> bool:
    """Raises OSError while a process that was killed is not quite gone."""
    os.rmdir(group)
    return True
