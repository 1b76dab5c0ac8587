"""Create namespaces for tests: other local queues and limits, another network."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

CLONE_NEWIPC, CLONE_NEWNET = 0x08000000, 0x40000000
LIMITS = Path("/proc/sys/kernel")

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_namespace() -> Iterator[None]:
    """Use a namespace of local queues for this thread, and for threads and processes that it starts."""
    with _own("ipc", CLONE_NEWIPC):
        yield


@contextmanager
def own_machine() -> Iterator[None]:
    """Use a namespace of local queues, and one of networks in which all ports are free."""
    with ExitStack() as stack:
        stack.enter_context(_own("ipc", CLONE_NEWIPC))
        stack.enter_context(_own("net", CLONE_NEWNET))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield


@contextmanager
def _own(kind: str, flag: int) -> Iterator[None]:
    before = os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.unshare(flag))
        try:
            yield
        finally:
            _check(_libc.setns(before, flag))
    finally:
        os.close(before)


def set_limit(name: str, octets: int) -> None:
    """Set msgmax or msgmnb in the current namespace."""
    (LIMITS / name).write_text(str(octets))


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
