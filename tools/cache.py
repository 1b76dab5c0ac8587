"""A cache, outside the source tree, of programs that have no package in the required version.

Each program has its own folder, `<name>-<version>`, which is complete or absent. Builds of several processes run one at
a time; the next build removes the files of one that was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

UNFINISHED = "building-"  # prefix of the folders of unfinished builds


class NotBuilt(Exception):
    """A program is missing. The message is one line with the reason and how to get it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A program in the cache."""

    name: str
    version: str
    entry: str  # path of the executable within the folder

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def program(self) -> Path:
        return cache_folder() / self.folder / self.entry

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


# build(place, missing) puts each program into its folder in `place`. Raises NotBuilt. It must not call `keep`: it runs
# with the lock held.
Build = Callable[[Path, Sequence[Kept]], None]


def cache_folder() -> Path:
    if given := os.environ.get("PENSTOCK_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "tools"


def not_there(wanted: Sequence[Kept]) -> list[Kept]:
    return [each for each in wanted if not each.program.exists()]


def keep(wanted: Sequence[Kept], build: Build) -> None:
    """Build the programs that are missing. Raises NotBuilt."""
    if not not_there(wanted):
        return
    with _turn(), _place() as place:
        missing = not_there(wanted)  # another process may have built them in the meantime
        if missing:
            build(place, missing)
        for each in missing:
            (place / each.folder).rename(cache_folder() / each.folder)


@contextmanager
def _turn() -> Iterator[None]:
    """Hold the lock on the cache. The kernel releases it if this process dies."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("penstock: another build of tools is running; waiting for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _place() -> Iterator[Path]:
    """Yield a temporary folder on the file system of the cache, so that one rename moves a program into it."""
    for left in cache_folder().glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=cache_folder()) as place:
        yield Path(place)
