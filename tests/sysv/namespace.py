"""An IPC namespace of a test's own: other queues, other limits."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWIPC = 0x08000000
LIMITS = Path("/proc/sys/kernel")

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_namespace() -> Iterator[None]:
    """For this thread, and for threads and processes that it starts."""
    before = os.open("/proc/thread-self/ns/ipc", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.unshare(CLONE_NEWIPC))
        yield
    finally:
        _check(_libc.setns(before, CLONE_NEWIPC))
        os.close(before)


def set_limit(name: str, octets: int) -> None:
    """msgmax or msgmnb, of the namespace that we are in."""
    (LIMITS / name).write_text(str(octets))


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
