"""Use a journal without a bridge, for tests of the kernel and of kills."""

from __future__ import annotations

import ctypes
import logging
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from services.sysv.journal import Journal
from services.sysv.record import KERNEL_LONG, UNSEEN, Record
from services.sysv.settings import Format

ROOM = 4096
QUEUE = "orders"


def kernel_writes(journal: Journal, body: bytes, mtype: int) -> None:
    """Write a message as `msgrcv` does: to an address, without Python's file layer."""
    ctypes.memmove(journal.address, KERNEL_LONG.pack(mtype) + body, KERNEL_LONG.size + len(body))


def take(journal: Journal, body: bytes, mtype: int = 1, *, seen: bool = True) -> None:
    """Plan and receive a message, up to the octets that the kernel writes."""
    peeked = (len(body), crc32(KERNEL_LONG.pack(mtype) + body)) if seen else (UNSEEN, 0)
    journal.plan(QUEUE, Format.RAW, len(body), *peeked)
    kernel_writes(journal, body, mtype)


def receive(journal: Journal, body: bytes, mtype: int = 1) -> Record:
    take(journal, body, mtype)
    return journal.received(len(body))


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(line, "action", "") for line in caplog.records if line.levelno >= logging.ERROR]


def asides(path: Path) -> list[Path]:
    return list(path.parent.glob("*.damaged-*"))


def at_each_line(work: Callable[[], object], check: Callable[[], None]) -> None:
    """Call `check` at each line of `work`, where the process might be killed."""

    def trace(*_: object) -> object:
        check()
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(None)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit this process's files, as on a full disk, until the end of the block: pytest's output may be a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
