"""Connections that only listen: the Python version of load/listen.c."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.replies import BrokenReply

READ_BYTES = 1 << 18
STAMP_DIGITS = 16  # ns of the monotonic clock, hexadecimal, at the beginning of a message


def encode_stamp(request: bytes, due: float) -> bytes:
    """Return `SEND <tag> <message>` whose message begins with the time it was due (s of the monotonic clock)."""
    at = _message_at(request)
    return request[:at] + b"%016x" % int(due * 1e9) + request[at + STAMP_DIGITS :]


def parse_stamp(line: bytes) -> float:
    """Return the time stamp of `MESSAGE <id> <message>`. Raises BrokenReply."""
    at = _message_at(line)
    try:
        return int(line[at : at + STAMP_DIGITS], 16) / 1e9
    except ValueError as wrong:
        raise BrokenReply("a MESSAGE bears no stamp") from wrong


def _message_at(line: bytes) -> int:
    """Return the position after the second space."""
    return line.find(b" ", line.find(b" ") + 1) + 1


@dataclass(slots=True)
class Listener:
    """A connection that receives messages. `waits`: list for the waits by the stamps; None without stamps."""

    sock: socket.socket
    rule: str
    waits: list[tuple[float, int]] | None = None
    heard: int = 0
    unread: bytes = b""

    def receive(self) -> None:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise BrokenReply("the peer closed the connection")
        data = self.unread + data
        self.unread = data[LISTENING[self.rule](self, data) :]


def text_messages(listener: Listener, data: bytes) -> int:
    whole = data.rfind(b"\n") + 1
    lines = data.count(b"\n")
    if data.count(b"MESSAGE ", 0, whole) != lines:
        raise BrokenReply("a subscriber got no MESSAGE")
    if listener.waits is not None:
        now = time.monotonic()
        listener.waits += [(now - parse_stamp(line), 1) for line in data[:whole].splitlines()]
    listener.heard += lines
    return whole


def nats_messages(listener: Listener, data: bytes) -> int:
    at = 0
    while end := data.find(b"\n", at) + 1:
        if data.startswith(b"MSG ", at):
            end += int(data[data.rfind(b" ", at, end) : end]) + 2
            if end > len(data):
                break
            listener.heard += 1
        elif data.startswith(b"PING", at):
            listener.sock.send(b"PONG\r\n")
        elif data.startswith(b"-ERR", at):
            raise BrokenReply("NATS answered -ERR")
        at = end
    return at


LISTENING: dict[str, Callable[[Listener, bytes], int]] = {
    "text-messages": text_messages,
    "nats-messages": nats_messages,
}
