"""Who takes messages out of a local queue: one bridge in its IPC namespace, whatever its journals (docs/sysv.md 3.2).

A POSIX message queue belongs to an IPC namespace, as local queues do, whatever files and networks two processes see.
Nothing is ever put into ours: it is there to be locked, one octet of it for each key. The kernel ends a lock with the
process, however that ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import struct

from services.sysv.kernel import LocalQueueError
from services.sysv.settings import format_key

log = logging.getLogger(__name__)

NAME = b"/penstock.sysv"  # made once, and never removed: who removes a lock does not know who is about to take it
MODE = 0o666  # bridges may run as different users
ONE_SMALL_MESSAGE = struct.pack("@8l", 0, 1, 1, 0, 0, 0, 0, 0)  # struct mq_attr
FLOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, pid


class Claim:
    """On the messages of one local queue."""

    def __init__(self, key: int) -> None:
        """Raises LocalQueueError (in_use). Where the kernel has no such queues, only the journal's lock is left."""
        self._fd = -1
        try:
            self._fd = _open()
            place = key & 0xFFFFFFFF
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
        except BlockingIOError:
            self.close()
            text = f"messages of the local queue with key {format_key(key)} are taken out by another `penstock sysv`"
            raise LocalQueueError("in_use", text) from None
        except OSError as error:
            self.close()
            text = "nothing keeps another bridge with other journals from key %s: %s"
            log.warning(text, format_key(key), error, extra={"action": "sysv_unclaimed"})

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open() -> int:
    """Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "mq_open"):  # before glibc 2.34
        library = ctypes.CDLL("librt.so.1", use_errno=True)
    umask = os.umask(0)
    try:
        fd = int(library.mq_open(NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE, ONE_SMALL_MESSAGE))
    finally:
        os.umask(umask)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd
