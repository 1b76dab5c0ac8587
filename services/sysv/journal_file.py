"""The file of a journal: found or made, locked, put aside (docs/sysv.md 3.2, 3.7)."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)


class JournalError(Exception):
    """A journal cannot be used; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def open_locked(path: Path, empty: bytes) -> int:
    """The file, which is nobody else's; if there is none it is made, with `empty` in it.

    Raises JournalError (in_use), OSError.
    """
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            _make(path, empty)
            continue
        if _lock(path, fd):
            sync_folder(path.parent)
            return fd
        os.close(fd)


def _make(path: Path, empty: bytes) -> None:
    """Whole or not at all: then one that is empty is one that was cut."""
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _lock(new, fd):
        os.close(fd)
        return
    try:
        if not path.exists():  # nor can anybody make it now, as that takes this lock
            write_all(fd, empty)
            os.fsync(fd)
            os.rename(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)
        os.close(fd)


def _lock(path: Path, fd: int) -> bool:
    """False: the name belongs to another file meanwhile. Raises JournalError, and then it is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        text = f"the journal {path} is in use: another `penstock sysv` has this mapping"
        raise JournalError("in_use", text) from None
    return os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path))


def put_aside(path: Path, why: Exception) -> None:
    """What cannot be trusted is kept for whoever wants to look at it."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.damaged-{moment}")
    os.rename(path, aside)
    text = "the journal %s is damaged: %s; a message may be lost; it was put aside as %s"
    log.error(text, path, why, aside.name, extra={"action": "journal_damaged"})


def write_all(fd: int, data: bytes) -> None:
    """From the file's beginning. A disk that is full takes a part, and says so only when asked again."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], done)


def sync_folder(folder: Path) -> None:
    """What was made in it is there after a crash, too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
