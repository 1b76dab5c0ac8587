"""A connection all of whose waiting ends at one moment: a peer that dribbles gets no more time than one that is silent.

A timeout of a socket holds for each step, and begins anew with each octet that comes.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from services.kit.dns.tcp_connect import open_tcp


class Clocked:
    """What `http.client` asks of a socket. `end`: by time.monotonic; it may be moved. Raises TimeoutError behind it."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self.end = end
        self._sock = sock

    def sendall(self, octets: bytes) -> None:
        rest = memoryview(octets)
        while rest:
            self._wait_until_end()
            rest = rest[self._sock.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What is read; the socket stays open until that is closed, too."""
        return io.BufferedReader(_Reader(self._sock.makefile("rb", buffering=0), self._wait_until_end))

    def close(self) -> None:
        self._sock.close()

    def _wait_until_end(self) -> None:
        self._sock.settimeout(left(self.end))


class _Reader(io.RawIOBase):
    def __init__(self, raw: socket.SocketIO, wait_until_end: Callable[[], None]) -> None:
        self._raw = raw
        self._wait_until_end = wait_until_end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._wait_until_end()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def left(end: float) -> float:
    """Seconds. Raises TimeoutError where there are none."""
    rest_s = end - time.monotonic()
    if rest_s <= 0:
        raise TimeoutError("timed out")
    return rest_s


def connect(host: str, port: int, tls: ssl.SSLContext | None, end: float) -> Clocked:
    """To the first of the host's addresses that answers; a name that hangs is waited for no longer than all else.

    Raises OSError. In a thread that has no loop.
    """
    try:
        sock, _ = asyncio.run(open_tcp(host, port, left(end)))
    except UnicodeError as error:
        raise OSError(f"{host} is no name: {error}") from None
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(left(end))  # of a handshake, all of it
        return Clocked(sock if tls is None else tls.wrap_socket(sock, server_hostname=host), end)
    except OSError:
        sock.close()
        raise
