"""Share queue labels between workers in a file: a line per label, with its last use.

A new label, or one used again, is appended; the last line of a label counts. Any other change replaces the file, with
another first line. Readers need no lock, and read only what is new.
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
    """Return the labels in use."""
    _, news = SharedNames(file).news()
    return {label for label, _ in news}


class SharedNames:
    """One worker's view of the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._first = b""  # its first line at the last read
        self._known = 0  # octets read

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of writers."""
        with self._file.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released by closing it
            yield

    def news(self) -> tuple[bool, list[tuple[str, float]]]:
        """Return new labels with their last use since the last call; True if these are all labels."""
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
        """Append a label. Call it with the lock, after `news`."""
        if not self._first:
            self.write({label: used})
            return
        first, self._first = self._first, b""  # as in `write`
        with self._file.open("ab") as names:
            is_cut = names.tell() > self._known  # a worker was killed, or the disk was full
            names.write(b"\n" * is_cut + encode_line([label, used]))
            self._known = names.tell()
        self._first = first

    def write(self, used: Mapping[str, float]) -> None:
        """Replace all labels. Call it with the lock, after `news`."""
        new = self._file.with_suffix(".new")
        self._first = b""  # until it is written: if that fails, read all again
        first = b"%d %d\n" % (os.getpid(), time.monotonic_ns())
        text = first + b"".join(encode_line([label, at]) for label, at in used.items())
        new.write_bytes(text)
        new.replace(self._file)
        self._first, self._known = first, len(text)
