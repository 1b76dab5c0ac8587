"""Kill a child process when its parent dies."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when `parent` dies, however it dies. Call it first in a forked child.

    SIGKILL by default: a child that hangs would otherwise keep receiving connections of a shared port.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:  # the parent died before this call
        os._exit(1)
