"""Programs that no package has in the version wanted: built once, kept in a cache outside the tree.

Each has a folder of its own, `<name>-<version>`, that is whole or not there. Builds take turns, also those of several
processes; what a killed one left is cleared away by the next.
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

UNFINISHED = "building-"  # begins the names of folders in which something is being built


class NotBuilt(Exception):
    """Why there is no such program, and how to get it, in one line."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One program of the cache."""

    name: str
    version: str
    entry: str  # the file to run, within its folder

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def program(self) -> Path:
        return cache_folder() / self.folder / self.entry

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


# build(place, missing) leaves each of them in `place`, in its folder. Raises NotBuilt. It keeps nothing else itself: it
# has the turn, and would wait for itself.
Build = Callable[[Path, Sequence[Kept]], None]


def cache_folder() -> Path:
    if given := os.environ.get("PENSTOCK_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "tools"


def not_there(wanted: Sequence[Kept]) -> list[Kept]:
    return [each for each in wanted if not each.program.exists()]


def keep(wanted: Sequence[Kept], build: Build) -> None:
    """Have those built that are not there. Raises NotBuilt."""
    if not not_there(wanted):
        return
    with _turn(), _place() as place:
        missing = not_there(wanted)  # somebody may have built them while we waited
        if missing:
            build(place, missing)
        for each in missing:
            (place / each.folder).rename(cache_folder() / each.folder)


@contextmanager
def _turn() -> Iterator[None]:
    """The kernel gives it back however we end."""
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
    """A folder beside those of the programs, so that a rename is all that it takes to keep them."""
    for left in cache_folder().glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=cache_folder()) as place:
        yield Path(place)
