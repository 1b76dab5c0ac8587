"""Check whether a folder of this machine can be written to; a server often cannot report its full disk itself."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

LOW_BYTES = 1 << 20  # one call may need more
PROBE = bytes(4096)
CACHE_S = 3.0  # a probe writes a file
PATIENCE_S = 1.0  # for the probe of a disk that hangs
UNWRITABLE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """A disk problem and what to do about it. `is_writable`: there is little space left, small writes succeed."""

    text: str
    is_writable: bool


def disk_trouble(folder: Path) -> DiskTrouble | None:
    """Return why little or nothing can be written to the folder, None if there is room or that is unknown.

    Writes to an unnamed file, as that is the only way to see a quota.
    """
    try:
        free = shutil.disk_usage(folder).free
        probe = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
        try:
            os.write(probe, PROBE)
        finally:
            os.close(probe)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return DiskTrouble(f"no space left on the disk of {folder}: free some space", False)
        if error.errno in UNWRITABLE:
            return DiskTrouble(f"{folder} cannot be written to: {error.strerror}", False)
        return None
    if free < LOW_BYTES:
        return DiskTrouble(f"only {free:,} octets left on the disk of {folder}: free some space", True)
    return None


class Disk:
    """A disk that is probed in a thread; the result is cached for CACHE_S."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._probe: asyncio.Task[DiskTrouble | None] | None = None
        self._probed_at = 0.0

    async def trouble(self) -> DiskTrouble | None:
        """Return what `disk_trouble` does, None if the probe hangs."""
        is_old = time.monotonic() - self._probed_at > CACHE_S
        if self._probe is None or (is_old and self._probe.done()):  # a disk that hangs blocks one thread only
            self._probed_at = time.monotonic()
            self._probe = asyncio.create_task(
                asyncio.to_thread(disk_trouble, self._folder), name="disk probe"
            )
        probe = self._probe
        await asyncio.wait([probe], timeout=PATIENCE_S)
        return probe.result() if probe.done() and not probe.cancelled() else None
