"""Read a `.rqprc` file, again whenever it changes (rqp_cast.md 1.1)."""

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
        raise ValueError(f"{path}: this home folder does not exist; write the whole path") from None


# `~` is the home folder of the account that runs the edge
RqprcPath = Annotated[Path, AfterValidator(_with_home)]


class RqprcFile:
    """`hosts`: the file's machines at the last `reload`; if the file cannot be read, the previous ones are kept."""

    def __init__(
        self, path: Path, standard_port: int, read: Callable[[str, int], Host | str] = read_host
    ) -> None:
        """standard_port: of lines without a port. read: parses a machine."""
        self.hosts: tuple[Host, ...] = ()
        self._path = path
        self._standard_port = standard_port
        self._read = read
        self._version: tuple[int, int, int] | None = None  # inode, octets, modification time
        self._trouble = ""

    def reload(self) -> None:
        """Read the file if it has changed. Costs microseconds if it has not."""
        try:
            found = self._path.stat()
            version = (found.st_ino, found.st_size, found.st_mtime_ns)
            if version == self._version:
                return
            text = self._path.read_text("utf-8", "replace")
        except OSError as error:
            self._warn(error.strerror or str(error))
            return
        self._version, self._trouble = version, ""
        parsed = parse_rqprc(text, self._standard_port, self._read)
        for line in parsed.bad_lines:
            fields = {"action": "rqprc_line_skipped", "file": str(self._path), "line": line.number}
            log.warning("%s line %d skipped: %s", self._path, line.number, line.problem, extra=fields)
        self.hosts = parsed.hosts

    def _warn(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            fields = {"action": "rqprc_unread", "file": str(self._path)}
            log.warning("cannot read %s, previous machines are kept: %s", self._path, trouble, extra=fields)
