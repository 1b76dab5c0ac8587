"""Make a temporary folder for the metrics of workers, and remove those of killed owners."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "penstock-metrics-"
LOCK = "lock"  # held by the owner and its children; the kernel releases it when all have exited
YOUNG_S = 60.0  # a younger folder may not have its lock yet


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder and remove it afterwards. Folders of killed owners are removed first."""
    place = parent or Path(tempfile.gettempdir())
    for stale in place.glob(f"{PREFIX}*"):
        if _is_abandoned(stale):
            shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place) as name, _locked(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock. Raises BlockingIOError if it is taken, OSError if the folder is missing."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _is_abandoned(folder: Path) -> bool:
    try:
        if time.time() - folder.stat().st_mtime < YOUNG_S:
            return False
        with _locked(folder):
            return True
    except OSError:  # in use, of another user, or removed meanwhile
        return False
