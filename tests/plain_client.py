"""A client under full control of the test: it can stop reading, split requests, and end with FIN or reset."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

PATIENCE_S = 60.0  # the longest wait for something that must happen; machines are shared
CHUNK = 1 << 18
T = TypeVar("T")


async def connected(place: tuple[str, int], receive_buffer: int = 0) -> socket.socket:
    """Connect. `receive_buffer`: bytes, for a client that does not read; 0 for the system's default."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


class PlainClient:
    """A connection; subclasses implement the protocols."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.address = sock.getsockname()
        self._loop = asyncio.get_running_loop()
        self._read = bytearray()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def send(self, *data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._loop.sock_sendall(self.sock, b"".join(data))

    async def read(self, size: int) -> bytes:
        """Read exactly `size` bytes. Raises EOFError at the server's FIN, ConnectionResetError."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self._read) < size:
                if not (chunk := await self._loop.sock_recv(self.sock, CHUNK)):
                    raise EOFError(f"FIN after {bytes(self._read[:100])!r}, {size} bytes were expected")
                self._read += chunk
        data = bytes(self._read[:size])
        del self._read[:size]
        return data

    async def rest(self) -> bytes:
        """Read everything until the server's FIN. Raises ConnectionResetError, TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            while chunk := await self._loop.sock_recv(self.sock, CHUNK):
                self._read += chunk
        data = bytes(self._read)
        self._read.clear()
        return data

    async def ended(self) -> str:
        """Return how the server closed the connection, "fin" or "reset"; check that there were no more answers."""
        try:
            rest = await self.rest()
        except ConnectionResetError:
            return "reset"
        assert rest == b"", f"unexpected answer {rest!r}"
        return "fin"

    async def is_silent(self, seconds: float) -> bool:
        """Return True if for `seconds` nothing arrives and the connection stays open."""
        if self._read:
            return False
        try:
            async with asyncio.timeout(seconds):
                self._read += await self._loop.sock_recv(self.sock, CHUNK)
        except TimeoutError:
            return True
        return False

    async def is_untouched(self, seconds: float) -> bool:
        """Read nothing for `seconds`; return whether the server left the connection open."""
        await asyncio.sleep(seconds)
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            return False

    def has_unread(self) -> bool:
        """Return whether an answer has arrived, without reading it."""
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def fin(self) -> None:
        """Half-close the connection: send no more requests, still read answers."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        if self.sock.fileno() >= 0:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()

    def close(self) -> None:
        """Close as at the end of a program: with FIN, or with a reset if answers are unread."""
        self.sock.close()


async def answer_or_none(answer: Awaitable[T]) -> T | None:
    """Return the answer, or None if the connection was closed without one."""
    try:
        return await answer
    except (EOFError, ConnectionResetError):
        return None
