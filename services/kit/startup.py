"""Repair what a process is started with: standard streams and the user's name.

A process may start with closed standard streams (`>&-`, some cron and service managers), in an encoding that cannot
show a queue's name, and with a user id without an entry in /etc/passwd (`docker run -u 123456`, OpenShift).
"""

from __future__ import annotations

import gc
import getpass
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STREAMS = ("stdin", "stdout", "stderr")  # by their descriptor


class _Messages(io.FileIO):
    """Standard error that drops what cannot be written, so that the exit status still shows the outcome."""

    def write(self, data: Any, /) -> int:
        """Write data; report data that cannot be written as written."""
        size = memoryview(data).nbytes
        try:
            written = super().write(data)
        except OSError:
            return size
        return size if written is None else written


@contextmanager
def paused_gc() -> Iterator[None]:
    """Switch the garbage collector off during imports, whose objects mostly stay: it takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def prepare_streams(*, is_service: bool = True) -> None:
    """Open closed standard streams, escape what outputs cannot encode, set USER for a user id without a name.

    Call it once, before anything else is opened. A closed input is empty. A service's output to a closed stream is
    dropped. A command's output to a closed standard output fails (EBADF), which sets its exit status. Messages to a
    standard error that is closed, on a full disk, or without a reader are dropped.
    """
    for descriptor, name in enumerate(STREAMS):
        if getattr(sys, name) is None:
            _open(descriptor, name, is_dropped=is_service or name == "stderr")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    messages = io.BufferedWriter(_Messages(2, "w", closefd=False))
    encoding = sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(
        messages, encoding, "backslashreplace", line_buffering=True, write_through=True
    )
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["USER"] = str(os.getuid())  # what getpass reads first


def _open(descriptor: int, name: str, *, is_dropped: bool) -> None:
    """Occupy the stream's descriptor: otherwise the next file or socket would get it, and all output."""
    flags = os.O_WRONLY if is_dropped and name != "stdin" else os.O_RDONLY
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
    mode = "r" if name == "stdin" else "w"
    setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - open until the process exits
