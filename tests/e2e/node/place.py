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
from tools.command import run
from tools.images.build import ROOT

PREFIX = "penstock-node-"
CGROUPS = Path("/sys/fs/cgroup")
LOCK = "lock"
POSSIBLE_S = 30.0


class Place:
    def __init__(self, folder: Path, lock: IO[str]) -> None:
        self.folder = folder
        self._lock = lock

    @classmethod
    def make(cls) -> Self:
        """Raises NotBuilt where none can be."""
        run("a node", [str(ROOT / "tools" / "node-possible")], POSSIBLE_S)
        unseen = Path(tempfile.mkdtemp(prefix="penstock-"))  # until it is locked, or it would look abandoned
        lock = (unseen / LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = unseen.rename(unseen.with_name(unseen.name.replace("penstock-", PREFIX)))
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

    def tell(self, kubeconfig: Path, tree: Path) -> None:
        """Whoever looks for the cluster of this tree finds this: whose network it is, and how to speak to it."""
        state = {"pid": os.getpid(), "kubeconfig": str(kubeconfig), "tree": str(tree)}
        self._lock.write(json.dumps(state))
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


def told(tree: Path) -> dict[Path, dict[str, Any]]:
    """What those told whose clusters of that tree are there to be looked at, by folder, the youngest first."""
    states = {folder: (folder / LOCK).read_text("utf-8") for folder in _folders() if is_held(folder)}
    parsed = {folder: json.loads(text) for folder, text in states.items() if text}
    ours = {folder: state for folder, state in parsed.items() if state.get("tree") == str(tree)}
    return dict(sorted(ours.items(), key=lambda item: -item[0].stat().st_mtime))


def is_held(folder: Path) -> bool:
    """By somebody who lives."""
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def _abandoned() -> Iterator[Place]:
    for folder in _folders():
        lock = (folder / LOCK).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            yield Place(folder, lock)


def _folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


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
