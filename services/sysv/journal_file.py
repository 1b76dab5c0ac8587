"""Open, lock and put aside the file of a journal (docs/sysv.md 3.2, 3.7)."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)


class JournalError(Exception):
    """An unusable journal; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def open_locked(path: Path, empty: bytes) -> int:
    """Open and lock the file; make it with the content `empty` if it is missing.

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
    """Make the file atomically, so that an empty file is always a truncated one."""
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _lock(new, fd):
        os.close(fd)
        return
    try:
        if not path.exists():  # no other process can make it now, as that takes this lock
            write_all(fd, empty)
            os.fsync(fd)
            os.rename(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)
        os.close(fd)


def _lock(path: Path, fd: int) -> bool:
    """Lock the file. Return False if the path is another file now. Raises JournalError after closing it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        text = f"the journal {path} is in use by another `penstock sysv`"
        raise JournalError("in_use", text) from None
    return os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path))


def put_aside(path: Path, why: Exception) -> None:
    """Rename a damaged file, to keep it for inspection."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.damaged-{moment}")
    os.rename(path, aside)
    text = "the journal %s is damaged: %s; a message may be lost; the file was renamed to %s"
    log.error(text, path, why, aside.name, extra={"action": "journal_damaged"})


def write_all(fd: int, data: bytes) -> None:
    """Write from the beginning of the file, in several writes if needed: a full disk fails only the second one."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], done)


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that its new entries survive a crash."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
