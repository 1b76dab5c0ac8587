"""Keep a message that was received from a local queue until it is durable in the store (docs/sysv.md 3.2, 3.3).

The file is mapped into memory, and `msgrcv` writes into the mapping, so that a received message is in the file at once.
It survives a crash of the process at once, and of the machine after `sync`.
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
from services.sysv.settings import MAX_BODY, Format

MAX_SIZE = BODY_AT + MAX_BODY  # octets of a journal


class Journal:
    """The journal of one mapping.

    Open it, publish the `pending` message and strike it. Then, for each message:
    `plan`, `msgrcv` to `address`, `received`, `sync`, publish, `strike`.

    Messages are numbered under the unique name of the run that received them, so that a name and a number identify a
    message, even in a file restored from a copy.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pending: Record | None = None  # received, and perhaps not published
        self._name = secrets.token_hex(16)  # of this run
        self._last = 0  # number
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._view: memoryview = memoryview(b"")

    # Lifecycle

    def open(self, room: int) -> None:
        """Open the file with space for a body of `room` octets. Raises JournalError: in_use, no_journal."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = open_locked(self.path, self._empty())
            self.pending = self._read()
            self._reserve(room)
        except OSError as error:
            text = f"the journal {self.path} is unusable: {error.strerror}"
            raise JournalError("no_journal", text) from None

    def _read(self) -> Record | None:
        """Read the pending message. A damaged file is put aside, and a new one is made."""
        try:
            return parse(os.pread(self._fd, min(os.fstat(self._fd).st_size, MAX_SIZE), 0))
        except Damaged as error:
            put_aside(self.path, error)
            self.close()
            self._fd = open_locked(self.path, self._empty())
            return None

    def _empty(self) -> bytes:
        """Return the content of a journal without a message."""
        return encode_plan(Plan(self._name, self._last + 1, Format.RAW, ""))

    def _reserve(self, room: int) -> None:
        """Allocate and map space for a body. Raises OSError, without a change."""
        size = min(max(BODY_AT + room, os.fstat(self._fd).st_size), MAX_SIZE)
        os.posix_fallocate(self._fd, 0, size)
        os.fsync(self._fd)
        larger = mmap.mmap(self._fd, size)
        self._unmap()
        self._map, self._view = larger, memoryview(larger)

    def close(self) -> None:
        """Close the file; a pending message stays in it."""
        self._unmap()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _unmap(self) -> None:
        self._view.release()
        if self._map is not None:
            self._map.close()
            self._map = None

    # Messages

    @property
    def room(self) -> int:
        """Return the octets of the largest body that fits."""
        return len(self._view) - BODY_AT

    def grow(self, room: int) -> None:
        """Make space for a larger body; nothing may be pending. Raises JournalError, without a change."""
        try:
            self._reserve(room)
        except OSError as error:
            text = f"the journal {self.path} has no room for {room:,} octets: {error.strerror}"
            raise JournalError("no_space", text) from None

    def plan(self, queue: str, kind: Format, room: int, seen_length: int = UNSEEN, seen_crc: int = 0) -> None:
        """Prepare the file for the next message, of at most `room` octets. Raises JournalError if the disk is full.

        The plan is written by `write` first, because a full disk is an error there but kills the process through the
        mapping; and then through the mapping, so that all its pages are present when the kernel writes. Later octets
        are not touched, so that a small message is cheap.
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
        """Return the address for `msgrcv`, of mtype and body."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._view, MTYPE_AT))

    def received(self, length: int) -> Record:
        """Take note that `msgrcv` has written a body of `length` octets; return the message."""
        self._view[RECEIPT_AT:STRUCK_AT] = encode_receipt(self._view, length)
        found = parse(bytes(self._view[: BODY_AT + length]))
        assert found is not None
        self._last, self.pending = found.number, found
        return found

    def renew(self) -> Record:
        """Give the pending message and this run a new name, as another process uses the same one.

        One write changes all of it, before the body: a kill leaves the old or the new state.
        """
        assert self.pending is not None
        self._name, self._last = secrets.token_hex(16), 1
        self.pending = replace(self.pending, journal=self._name, number=self._last)
        with suppress(OSError):  # only a kill before it is published would lose the message
            os.pwrite(self._fd, encode_record(self.pending)[:STRUCK_AT], 0)
        return self.pending

    def sync(self) -> None:
        """Flush the file to the disk. May be called in a thread. Raises OSError."""
        os.fdatasync(self._fd)

    def strike(self) -> None:
        """Mark the pending message as stored. If the mark is lost, the store detects the duplicate."""
        self._view[STRUCK_AT:MTYPE_AT] = STRUCK
        self.pending = None
