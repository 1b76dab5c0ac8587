"""Whether a folder of this machine can be written to: where the disk is full, a server can often not say so itself."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

LOW_BYTES = 1 << 20  # a run of messages may take more
PROBE = bytes(4096)
LOOK_AGAIN_S = 3.0  # a look writes a file
PATIENCE_S = 1.0  # for a look at a disk that does not answer either
UNWRITABLE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """What is wrong with a disk and what to do; `is_writable` where there is little room, and small writes succeed."""

    text: str
    is_writable: bool


def disk_trouble(folder: Path) -> DiskTrouble | None:
    """Return why nothing, or not much, can be written there, None where there is room, or where that is unknown.

    A file without a name is written and forgotten: a quota is seen in no other way.
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
            return DiskTrouble(f"no space left on the disk of {folder}: make room, and it goes on", False)
        if error.errno in UNWRITABLE:
            text = f"nothing can be written to {folder}: {error.strerror}: mend that, and it goes on"
            return DiskTrouble(text, False)
        return None
    if free < LOW_BYTES:
        return DiskTrouble(f"only {free:,} octets are left on the disk of {folder}: make room", True)
    return None


class Disk:
    """Looks in a thread whether a folder can be written to; one look serves all who ask within seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._look: asyncio.Task[DiskTrouble | None] | None = None
        self._looked = 0.0

    async def trouble(self) -> DiskTrouble | None:
        """Return what `disk_trouble` does, at most some seconds old."""
        is_old = time.monotonic() - self._looked > LOOK_AGAIN_S
        if self._look is None or (is_old and self._look.done()):  # a disk that hangs takes one thread only
            self._looked = time.monotonic()
            self._look = asyncio.create_task(
                asyncio.to_thread(disk_trouble, self._folder), name="look at the disk"
            )
        look = self._look
        await asyncio.wait([look], timeout=PATIENCE_S)
        return look.result() if look.done() and not look.cancelled() else None
