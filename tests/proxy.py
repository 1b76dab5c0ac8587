"""A TCP proxy that injects faults: it drops replies or all data of existing connections, or delays requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType


class Proxy:
    """A proxy to a port of this machine, used with `async with`; it listens on `port`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._lines: list[_Line] = []
        self.port = 0
        # a request with these octets is forwarded, its reply lost and the connection closed
        self.lose_replies_to = b""
        self.lost = 0
        # octets of the delayed requests, and the event that ends the delay
        self.kept: tuple[bytes, asyncio.Event] | None = None
        self.held = 0
        self.on_request: Callable[[bytes], None] | None = None  # called before a request is forwarded

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*(task for line in self._lines for task in line.tasks), return_exceptions=True)

    def keep(self, octets: bytes) -> None:
        """Delay a request with these octets, and all that follows on its connection."""
        self.kept = octets, asyncio.Event()

    def let_go(self) -> None:
        if self.kept is not None:
            self.kept[1].set()
            self.kept = None

    def lead_to(self, target: int) -> None:
        """Forward new connections to another port, as after a failover; existing ones are kept."""
        self._target = target

    def cut(self) -> None:
        """Close all existing connections; new ones work."""
        for line in self._lines:
            line.close()

    def freeze(self) -> int:
        """Block all existing connections but leave them open; return their number. New ones work."""
        frozen = 0
        for line in self._lines:
            if line.open and not line.frozen:
                line.frozen = True
                frozen += 1
        return frozen

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        line = _Line(self, writer, up_writer)
        self._lines.append(line)
        line.tasks = [
            asyncio.create_task(line.requests(reader)),
            asyncio.create_task(line.replies(up_reader)),
        ]


class _Line:
    def __init__(self, proxy: Proxy, down: asyncio.StreamWriter, up: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._down = down
        self._up = up
        self.tasks: list[asyncio.Task[None]] = []
        self.open = True
        self.frozen = False
        self.doomed = False

    async def requests(self, reader: asyncio.StreamReader) -> None:
        await self._carry(reader, self._up, self._note)

    async def replies(self, reader: asyncio.StreamReader) -> None:
        await self._carry(reader, self._down, self._lose)

    async def _hold(self, data: bytes) -> None:
        if self._proxy.on_request is not None:
            self._proxy.on_request(data)
        kept = self._proxy.kept
        if kept is not None and kept[0] in data:
            self._proxy.held += 1
            await kept[1].wait()

    def _note(self, data: bytes) -> bool:
        wanted = self._proxy.lose_replies_to
        if wanted and wanted in data:
            self.doomed = True
        return True

    def _lose(self, data: bytes) -> bool:
        """Return whether to drop a reply; the server has executed the request."""
        if self.doomed:
            self._proxy.lost += 1
        return not self.doomed

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: object
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                while self.frozen:
                    await asyncio.Event().wait()
                if writer is self._up:
                    await self._hold(data)
                if not passes(data):  # type: ignore[operator]
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            for writer in (self._down, self._up):
                writer.transport.abort()
            for task in self.tasks:
                if task is not asyncio.current_task():
                    task.cancel()
