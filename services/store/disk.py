"""Whether a folder of this machine can be written to: where the disk is full, a server can often not say so itself."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

FULL_BYTES = 1 << 20  # less is left than a run of messages takes: the server could not write, and ended
PROBE = bytes(4096)
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
