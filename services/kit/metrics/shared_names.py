"""Names of queues that workers have in common, in a file: a line each, with when it was last used.

A name that comes, or is used again after a while, is a line more, and the last one counts; whatever else changes writes
the file anew, in the place of the old one, under another first line. Who reads needs no lock, and reads what is new.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from services.kit.metrics.json_lines import encode_line, parse_lines, whole_lines


def read_names(file: Path) -> set[str]:
    """The names that there are now."""
    _, told = SharedNames(file).news()
    return {label for label, _ in told}


class SharedNames:
    """One worker's view of the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._first = b""  # its first line when it was last looked at
        self._known = 0  # octets of it

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes it meanwhile."""
        with self._file.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go of by closing it
            yield

    def news(self) -> tuple[bool, list[tuple[str, float]]]:
        """Names, and when each was last used, since this was last asked; True: these are all that there are."""
        try:
            with self._file.open("rb") as names:
                first = names.readline()
                is_whole = first != self._first
                at = len(first) if is_whole else self._known
                names.seek(at)
                text = names.read()
        except FileNotFoundError:
            return False, []
        self._first, self._known = first, at + len(whole_lines(text))
        return is_whole, [(label, used) for label, used in parse_lines(text)]

    def add(self, label: str, used: float) -> None:
        """Only while it is locked, and once all news are known."""
        if not self._first:
            self.write({label: used})
            return
        first, self._first = self._first, b""  # as in `write`
        with self._file.open("ab") as names:
            is_cut = names.tell() > self._known  # as another worker was killed, or found no room
            names.write(b"\n" * is_cut + encode_line([label, used]))
            self._known = names.tell()
        self._first = first

    def write(self, used: Mapping[str, float]) -> None:
        """These are all. Only while it is locked, and once all news are known."""
        new = self._file.with_suffix(".new")
        self._first = b""  # until it is written: else all that there is are news
        first = b"%d %d\n" % (os.getpid(), time.monotonic_ns())
        text = first + b"".join(encode_line([label, at]) for label, at in used.items())
        new.write_bytes(text)
        new.replace(self._file)
        self._first, self._known = first, len(text)
