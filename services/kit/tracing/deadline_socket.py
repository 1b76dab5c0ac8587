"""A connection with one deadline for all its operations.

A socket's own timeout begins anew with each octet, so a slow peer would get more time than a silent one.
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


class DeadlineSocket:
    """The part of a socket that `http.client` uses, with a deadline `end` (time.monotonic). Raises TimeoutError."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self.end = end
        self._sock = sock

    def sendall(self, octets: bytes) -> None:
        """Send all octets."""
        rest = memoryview(octets)
        while rest:
            self._wait_until_end()
            rest = rest[self._sock.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file to read from; the socket stays open until both are closed."""
        return io.BufferedReader(_Reader(self._sock.makefile("rb", buffering=0), self._wait_until_end))

    def close(self) -> None:
        """Close the socket, once the file is closed too."""
        self._sock.close()

    def _wait_until_end(self) -> None:
        self._sock.settimeout(seconds_left(self.end))


class _Reader(io.RawIOBase):
    """A raw file that sets the socket's timeout before each read."""

    def __init__(self, raw: socket.SocketIO, wait_until_end: Callable[[], None]) -> None:
        self._raw = raw
        self._wait_until_end = wait_until_end

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer before the deadline."""
        self._wait_until_end()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Release the socket."""
        self._raw.close()
        super().close()


def seconds_left(end: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError if it has passed."""
    rest_s = end - time.monotonic()
    if rest_s <= 0:
        raise TimeoutError("timed out")
    return rest_s


def connect(host: str, port: int, tls: ssl.SSLContext | None, end: float) -> DeadlineSocket:
    """Connect to the first address of the host that answers, and shake hands, before `end`.

    Raises OSError. Call it in a thread without an event loop.
    """
    try:
        sock, _ = asyncio.run(open_tcp(host, port, seconds_left(end)))
    except UnicodeError as error:
        raise OSError(f"{host} is not a valid name: {error}") from None
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(seconds_left(end))  # for the whole handshake
        return DeadlineSocket(sock if tls is None else tls.wrap_socket(sock, server_hostname=host), end)
    except OSError:
        sock.close()
        raise
