"""A journal: what was taken out of a local queue and is not durable in the store yet (docs/sysv.md 3.2, 3.3).

The file is mapped into memory, and `msgrcv` writes into the mapping: as soon as the kernel has taken a message out of
its queue, the message is in the file. So it outlives the process at once, and the machine after `sync`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from services.sysv.journal_file import JournalError, open_locked, put_aside, write_all
from services.sysv.record import (
    BODY_AT,
    MTYPE_AT,
    RECEIPT_AT,
    STRUCK,
    STRUCK_AT,
    UNSEEN,
    Damaged,
    Plan,
    Record,
    encode_plan,
    encode_receipt,
    encode_record,
    parse,
)
from services.sysv.settings import LARGEST_BODY, Format

LARGEST = BODY_AT + LARGEST_BODY  # octets of a journal


class Journal:
    """Of one mapping. Open it, publish what is `pending`, and strike it out; then, message by message:

    `plan`, `msgrcv` to `address`, `received`, `sync`, publish, `strike`.

    What is pending has its number from the run that took it out. What this run takes out is numbered under a name of
    its own, which nobody had: so a number says which message it is, even in a file that was restored from a copy.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pending: Record | None = None  # taken out, and perhaps not published
        self._name = secrets.token_hex(16)  # of this run
        self._last = 0  # number
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._view: memoryview = memoryview(b"")

    # life

    def open(self, room: int) -> None:
        """`room`: octets for a body. Raises JournalError: in_use, no_journal."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = open_locked(self.path, self._empty())
            self.pending = self._read()
            self._reserve(room)
        except OSError as error:
            text = f"the journal {self.path} cannot be used: {error.strerror}"
            raise JournalError("no_journal", text) from None

    def _read(self) -> Record | None:
        """What it holds. One that cannot be trusted is put aside, and a new one begins."""
        try:
            return parse(os.pread(self._fd, min(os.fstat(self._fd).st_size, LARGEST), 0))
        except Damaged as error:
            put_aside(self.path, error)
            self.close()
            self._fd = open_locked(self.path, self._empty())
            return None

    def _empty(self) -> bytes:
        """A journal in which nothing was ever taken out."""
        return encode_plan(Plan(self._name, self._last + 1, Format.RAW, ""))

    def _reserve(self, room: int) -> None:
        """Disk space for a body of so many octets, and the mapping of it. Raises OSError, and then it is as before."""
        size = min(max(BODY_AT + room, os.fstat(self._fd).st_size), LARGEST)
        os.posix_fallocate(self._fd, 0, size)
        os.fsync(self._fd)
        larger = mmap.mmap(self._fd, size)
        self._unmap()
        self._map, self._view = larger, memoryview(larger)

    def close(self) -> None:
        """What is pending stays so."""
        self._unmap()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _unmap(self) -> None:
        self._view.release()
        if self._map is not None:
            self._map.close()
            self._map = None

    # work

    @property
    def room(self) -> int:
        """Octets that a body may have."""
        return len(self._view) - BODY_AT

    def grow(self, room: int) -> None:
        """More room; nothing may be pending. Raises JournalError, and then it is as before."""
        try:
            self._reserve(room)
        except OSError as error:
            text = f"the journal {self.path} has no room for {room:,} octets: {error.strerror}"
            raise JournalError("no_space", text) from None

    def plan(self, queue: str, kind: Format, room: int, seen_length: int = UNSEEN, seen_crc: int = 0) -> None:
        """The next message may be taken now, if its body has at most `room` octets.

        Raises JournalError where a disk has no room after all. Written as a file first: a full disk is an error then,
        where through the mapping it would end the process. Then through the mapping, so that every page of it is there
        when the kernel writes. What is behind stays as it was, so that a small message costs little.
        """
        head = encode_plan(Plan(self._name, self._last + 1, kind, queue, seen_length, seen_crc))
        blank = head + bytes(room)
        try:
            write_all(self._fd, blank)
        except OSError as error:
            text = f"the journal {self.path} cannot be written: {error.strerror}"
            raise JournalError("no_space", text) from None
        self._view[: len(blank)] = blank

    @property
    def address(self) -> int:
        """Where `msgrcv` has to write: mtype and body."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._view, MTYPE_AT))

    def received(self, length: int) -> Record:
        """`msgrcv` has written a body of so many octets."""
        self._view[RECEIPT_AT:STRUCK_AT] = encode_receipt(self._view, length)
        found = parse(bytes(self._view[: BODY_AT + length]))
        assert found is not None
        self._last, self.pending = found.number, found
        return found

    def renew(self) -> Record:
        """Begins anew under another name, with what is pending: somebody else counts under ours, too.

        All that changes stands before the body, and is one write: a kill leaves the old or the new.
        """
        assert self.pending is not None
        self._name, self._last = secrets.token_hex(16), 1
        self.pending = replace(self.pending, journal=self._name, number=self._last)
        with suppress(OSError):  # without it only a kill before it is published would lose the message
            os.pwrite(self._fd, encode_record(self.pending)[:STRUCK_AT], 0)
        return self.pending

    def sync(self) -> None:
        """On the disk when it returns; may be called in another thread. Raises OSError."""
        os.fdatasync(self._fd)

    def strike(self) -> None:
        """What was pending is durable in the store. If this is lost, the store knows that it has it."""
        self._view[STRUCK_AT:MTYPE_AT] = STRUCK
        self.pending = None
