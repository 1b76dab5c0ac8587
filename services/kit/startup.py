"""What a process is given when it starts, made fit to work with: standard streams and the user's name.

A process may be started with any standard stream closed (`>&-`, some cron and service managers), in an encoding that
cannot show a queue's name, and as a user id without a line in /etc/passwd (`docker run -u 123456`, OpenShift).
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
    """Standard error: what cannot be written there is dropped, so that the exit status still tells the outcome."""

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        try:
            written = super().write(data)
        except OSError:
            return size
        return size if written is None else written


@contextmanager
def paused_gc() -> Iterator[None]:
    """Keep the garbage collector out of imports, whose objects mostly stay: it takes a sixth of their time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def prepare_streams(*, is_service: bool = True) -> None:
    """Open closed standard streams, escape what outputs cannot encode, name a user id that has no name.

    To be called once, before anything else is opened. A closed input is empty. What a service writes to a closed output
    is dropped. Of a command, results to a closed standard output are refused (EBADF), so that its exit status can tell.
    Messages to a standard error that is closed, on a full disk, or without a reader are dropped.
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
        os.environ["USER"] = str(os.getuid())  # where getpass, and so libraries, look first


def _open(descriptor: int, name: str, *, is_dropped: bool) -> None:
    """Give the descriptor to its stream: else the next file or socket gets it, and all that is printed."""
    flags = os.O_WRONLY if is_dropped and name != "stdin" else os.O_RDONLY
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
    mode = "r" if name == "stdin" else "w"
    setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - open as long as the process
