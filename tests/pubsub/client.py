"""A text pub/sub client that sends any bytes and checks each line it receives."""

from __future__ import annotations

import asyncio
import socket
from typing import Self, cast

PATIENCE_S = 60.0
Place = tuple[str, int]


class Client:
    """A client; every wait fails after PATIENCE_S."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, place: Place, receive_buffer: int = 0) -> Self:
        """Connect. receive_buffer: octets of the kernel's buffer, 0 for the default."""
        sock = socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, place)
        reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 26)
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            await self.writer.drain()

    async def line(self) -> bytes:
        """Return the next line with its end; b'' once the server has closed."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readline()

    async def lines(self, number: int) -> list[bytes]:
        return [await self.line() for _ in range(number)]

    async def ask(self, data: bytes) -> bytes:
        """Send lines and return the next received line."""
        await self.send(data)
        return await self.line()

    async def subscribe(self, identifier: bytes, pattern: bytes) -> None:
        assert await self.ask(b"SUBSCRIBE %b %b\n" % (identifier, pattern)) == b"OK\n"

    async def publish(self, tag: bytes, message: bytes) -> None:
        assert await self.ask(b"SEND %b %b\n" % (tag, message)) == b"OK\n"

    async def nothing_more(self) -> None:
        """Check with a PING that no other line is pending."""
        assert await self.ask(b"PING\n") == b"OK\n"

    async def closed(self) -> None:
        """Wait until the server closes without another line."""
        async with asyncio.timeout(PATIENCE_S):
            assert await self.reader.read(1) == b""

    def stop_reading(self) -> None:
        """Stop reading: data waits in the kernel, then at the server."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def read_on(self) -> None:
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    def half_close(self) -> None:
        self.writer.write_eof()

    def close(self) -> None:
        self.writer.transport.abort()
