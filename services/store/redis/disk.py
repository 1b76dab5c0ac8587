"""Whether a folder of this machine can be written to: where the disk is full, a server can often not say so itself."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from pathlib import Path

FULL_BYTES = 1 << 20  # less is left than a run of messages takes: the server could not write, and ended
PROBE = bytes(4096)
LOOK_AGAIN_S = 3.0  # a look writes a file
PATIENCE_S = 1.0  # for a look at a disk that does not answer either
UNWRITABLE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))


def disk_trouble(folder: Path) -> str:
    """Return why nothing can be written there and what to do, '' where it can be, or where that is unknown.

    A file without a name is written and forgotten: a quota is seen in no other way.
    """
    try:
        free = shutil.disk_usage(folder).free
        if free < FULL_BYTES:
            return f"no space left on the disk of {folder} ({free} octets): make room, and it goes on"
        probe = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
        try:
            os.write(probe, PROBE)
        finally:
            os.close(probe)
    except OSError as error:
        if error.errno in UNWRITABLE:
            return f"nothing can be written to {folder}: {error.strerror}: mend that, and it goes on"
    return ""


class Disk:
    """Looks in a thread whether a folder can be written to; one look serves all who ask within seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._look: asyncio.Task[str] | None = None
        self._looked = 0.0

    async def trouble(self) -> str:
        """Return what `disk_trouble` does, at most some seconds old."""
        is_old = time.monotonic() - self._looked > LOOK_AGAIN_S
        if self._look is None or (is_old and self._look.done()):  # a disk that hangs takes one thread only
            self._looked = time.monotonic()
            self._look = asyncio.create_task(
                asyncio.to_thread(disk_trouble, self._folder), name="look at the disk"
            )
        look = self._look
        await asyncio.wait([look], timeout=PATIENCE_S)
        return look.result() if look.done() and not look.cancelled() else ""
