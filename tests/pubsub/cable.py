"""A TCP cable between two ends that a test can cut, restore, or block."""

from __future__ import annotations

import asyncio
from types import TracebackType

PIECE = 1 << 16  # octets carried at a time


class Cable:
    """A cable that listens on `port` for its whole life, and connects to a port of this machine. `async with`.

    `carried` counts the octets that came back from there, which are those that the dialling end received.
    """

    def __init__(self, target: int, port: int = 0) -> None:
        self.port = port
        self.carried = 0
        self.opened = 0  # connections so far
        self._target = target
        self._server: asyncio.Server | None = None
        self._strands: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._is_out = False
        self._flows = asyncio.Event()
        self._flows.set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the store at the other end."""
        return f"redis://{self.address}"

    async def __aenter__(self) -> Cable:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._is_out = True
        strands = list(self._strands)
        self.break_all()
        await asyncio.gather(*strands, return_exceptions=True)

    # calls of a test

    def break_all(self) -> None:
        """Reset all connections; new ones work."""
        for strand, writers in list(self._strands.items()):
            for writer in writers:
                writer.transport.abort()
            strand.cancel()

    def pull_out(self) -> None:
        """Reset all connections, and new ones until it is plugged in."""
        self._is_out = True
        self.break_all()

    def take_no_more(self) -> None:
        """Keep connections, but reset new ones until it is plugged in."""
        self._is_out = True

    def plug_in(self) -> None:
        self._is_out = False

    def pinch(self) -> None:
        """Keep and accept connections, but carry no octets until released."""
        self._flows.clear()

    def release(self) -> None:
        self._flows.set()

    # inside

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        strand = asyncio.current_task()
        assert strand is not None
        writers = self._strands[strand] = [writer]
        self.opened += 1
        try:
            if not self._is_out:
                await self._connect(reader, writer, writers)
        except (OSError, asyncio.CancelledError):
            pass  # errors at the end of a direction are expected
        finally:
            del self._strands[strand]
            for end in writers:
                end.transport.abort()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, writers: list[asyncio.StreamWriter]
    ) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        writers.append(up_writer)
        ways = [
            asyncio.ensure_future(self._carry(reader, up_writer, counted=False)),
            asyncio.ensure_future(self._carry(up_reader, writer, counted=True)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        """Carry one direction up to and including its FIN."""
        while data := await reader.read(PIECE):
            await self._flows.wait()
            # asyncio's transports drop such a write, uvloop's raise RuntimeError
            if writer.transport.is_closing():
                return
            self.carried += len(data) if counted else 0
            writer.write(data)
            await writer.drain()
        await self._flows.wait()
        if not writer.transport.is_closing():
            writer.write_eof()
