"""Allow one bridge per IPC namespace to receive from a local queue, regardless of its journals (docs/sysv.md 3.2).

A POSIX message queue belongs to an IPC namespace, as local queues do. Ours stays empty and is only locked, one octet
per key. The kernel releases the lock when the process exits.
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

NAME = b"/penstock.sysv"  # never removed: another process may be about to lock it
MODE = 0o666  # bridges may run as different users
ONE_SMALL_MESSAGE = struct.pack("@8l", 0, 1, 1, 0, 0, 0, 0, 0)  # struct mq_attr
FLOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, pid


class Claim:
    """The exclusive right to receive from one local queue."""

    def __init__(self, key: int) -> None:
        """Lock the key. Raises LocalQueueError (in_use). Without POSIX queues, only the journal's lock protects it."""
        self._fd = -1
        try:
            self._fd = _open()
            place = key & 0xFFFFFFFF
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
        except BlockingIOError:
            self.close()
            text = f"another `penstock sysv` receives from the local queue with key {format_key(key)}"
            raise LocalQueueError("in_use", text) from None
        except OSError as error:
            self.close()
            text = "key %s is not protected from a bridge with other journals: %s"
            log.warning(text, format_key(key), error, extra={"action": "sysv_unclaimed"})

    def close(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open() -> int:
    """Open or create the POSIX queue. Raises OSError."""
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
