"""Write entries into a store in the form that edges and upkeep use, many in a call."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.redis import encode_command

HOUR_MS = 3_600_000
BATCH = 2000  # entries of one write to the socket
PLACE = re.compile(rb"%0?(\d+)[ds]")  # placeholder of a value that is filled in later, with its width


@dataclass(frozen=True, slots=True)
class Day:
    """The data to write: letters of all queues, and samples of the same queues, spread evenly over past hours."""

    letters: int
    samples: int
    end_ms: int
    hours: int = 24

    @property
    def ms(self) -> int:
        return self.hours * HOUR_MS

    @property
    def begin_ms(self) -> int:
        return self.end_ms - self.ms


def template(begin: Sequence[bytes], fields: Mapping[bytes, bytes], more: int = 0) -> bytes:
    """Return a command, or a part of one, whose values are filled in by %; `more`: number of fields in the next parts.

    Each placeholder has a fixed width, because the length of a word precedes it.
    """
    words = [*begin, *(word for pair in fields.items() for word in pair)]
    head = b"*%d\r\n" % (len(words) + 2 * more) if begin else b""
    return head + b"".join(b"$%d\r\n%s\r\n" % (_width(each), each) for each in words)


def _width(word: bytes) -> int:
    return len(PLACE.sub(lambda place: b"x" * int(place[1]), word))


class Pipe:
    """A connection that is written to without waiting; a thread counts the answers."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._answers = 0
        self._refused = b""
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self) -> None:
        """Count answers. Each is an id: a line with `$` and the length, and a line with the id."""
        while chunk := self._sock.recv(1 << 20):
            self._answers += chunk.count(b"$")
            if b"-E" in chunk or b"-W" in chunk or chunk[:1] == b"-":
                self._refused = self._refused or chunk

    def send(self, entries: Iterator[bytes]) -> int:
        """Send all entries and close the connection. Raises OSError if the server refused one."""
        sent, batch = 0, []
        for entry in entries:
            batch.append(entry)
            if len(batch) == BATCH:
                self._sock.sendall(b"".join(batch))
                sent, batch = sent + BATCH, []
        self._sock.sendall(b"".join(batch) + encode_command("QUIT"))
        self._listening.join()
        self._sock.close()
        sent += len(batch)
        if self._answers != sent:
            raise OSError(f"of {sent} entries {self._answers} were taken: {self._refused[:200]!r}")
        return sent
