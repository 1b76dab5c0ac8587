"""A file `.rqprc`, read again when it changes (rqp_cast.md 1.1): what it says is never older than a look at it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from protos.rqp_cast import Host, parse_rqprc, read_host

log = logging.getLogger(__name__)


def _with_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: there is no such home folder: write the whole path") from None


RqprcPath = Annotated[
    Path, AfterValidator(_with_home)
]  # `~` is the home folder of the account that runs the edge


class RqprcFile:
    """`hosts`: as the file said when it was last looked at; a file that cannot be read says what it said before."""

    def __init__(
        self, path: Path, standard_port: int, read: Callable[[str, int], Host | str] = read_host
    ) -> None:
        """standard_port: of lines that name none. read: what a machine looks like."""
        self.hosts: tuple[Host, ...] = ()
        self._path = path
        self._standard_port = standard_port
        self._read = read
        self._read_as: tuple[int, int, int] | None = None  # inode, octets, time of the last change
        self._trouble = ""

    def reload(self) -> bool:
        """Reads the file if it is not as it was; True if it says something else now."""
        try:
            found = self._path.stat()
            seen = (found.st_ino, found.st_size, found.st_mtime_ns)
            if seen == self._read_as:
                return False
            text = self._path.read_text("utf-8", "replace")
        except OSError as error:
            self._complain(error.strerror or str(error))
            return False
        self._read_as, self._trouble = seen, ""
        return self._take(text)

    def _take(self, text: str) -> bool:
        told = parse_rqprc(text, self._standard_port, self._read)
        for line in told.bad_lines:
            fields = {"action": "rqprc_line_skipped", "file": str(self._path), "line": line.number}
            log.warning("%s line %d: %s", self._path, line.number, line.problem, extra=fields)
        is_new = told.hosts != self.hosts
        self.hosts = told.hosts
        return is_new

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            fields = {"action": "rqprc_unread", "file": str(self._path)}
            log.warning("%s cannot be read: %s", self._path, trouble, extra=fields)
