"""Storage of a node: a folder, and control groups of the same name.

The creator holds a lock in the folder, which the kernel releases when that process ends in any way. So the next run can
identify and remove leftovers of dead runs.
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
        """Create a place. Raise NotBuilt if this host cannot run a node."""
        run("a node", [str(ROOT / "tools" / "node-possible")], POSSIBLE_S)
        # renamed once it is locked, as it would look abandoned before
        unseen = Path(tempfile.mkdtemp(prefix="penstock-"))
        lock = (unseen / LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = unseen.rename(unseen.with_name(unseen.name.replace("penstock-", PREFIX)))
        place = cls(folder, lock)
        for hierarchy in _hierarchies():
            (hierarchy / folder.name).mkdir()
        return place

    @property
    def cgroup(self) -> str:
        """Return the control group's path from the root of each hierarchy, as the kubelet expects it."""
        return f"/{self.folder.name}"

    def subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def record(self, kubeconfig: Path, tree: Path) -> None:
        """Record process and kubeconfig of the cluster, so that `running_clusters` finds it."""
        state = {"pid": os.getpid(), "kubeconfig": str(kubeconfig), "tree": str(tree)}
        self._lock.write(json.dumps(state))
        self._lock.flush()

    def remove(self) -> None:
        """Remove control groups and folder. Raise AssertionError if a process still runs, OSError on a mount."""
        with self._lock:
            for hierarchy in _hierarchies():
                _remove_cgroup(hierarchy / self.folder.name)
            shutil.rmtree(self.folder)


def clear_away() -> list[str]:
    """Remove leftovers of dead runs and return their folders."""
    gone = []
    for place in _abandoned():
        place.remove()
        gone.append(str(place.folder))
    return gone


def running_clusters(tree: Path) -> dict[Path, dict[str, Any]]:
    """Return the records of running clusters of that tree by folder, the youngest first."""
    states = {folder: (folder / LOCK).read_text("utf-8") for folder in _folders() if is_held(folder)}
    parsed = {folder: json.loads(text) for folder, text in states.items() if text}
    ours = {folder: state for folder, state in parsed.items() if state.get("tree") == str(tree)}
    return dict(sorted(ours.items(), key=lambda item: -item[0].stat().st_mtime))


def is_held(folder: Path) -> bool:
    """Return whether a running process holds the folder's lock."""
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
    """Return the hierarchies of control groups: one with version 2, one per controller with version 1."""
    if (CGROUPS / "cgroup.procs").exists():
        return [CGROUPS]
    folders = (path for path in CGROUPS.iterdir() if not path.is_symlink())
    return [path for path in folders if (path / "cgroup.procs").exists()]


def _remove_cgroup(group: Path) -> None:
    """Remove a control group and all below it; the kernel removes the files in them."""
    if not group.exists():
        return
    for path, _, _ in os.walk(group, topdown=False):
        eventually(partial(_is_removed, path))


def _is_removed(group: str) -> bool:
    """Remove an empty control group. Raise OSError while a killed process has not ended yet."""
    os.rmdir(group)
    return True
