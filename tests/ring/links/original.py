"""A node by the originals' rules (the marks [R] of ring.md) on raw sockets; it shares no code with ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import Coroutine
from typing import Any, Self

TTL = 65025
OPEN_S = 0.2  # 30 s in the originals
OWN_RING_S = 0.5  # 60 s in the originals
SELF_S = 1.0  # 120 s in the originals
HOST = "127.0.0.1"
EVERYBODY = "127.255.255.255"


class Original:
    """An original node that runs within `async with`. Its name is host:pid, without its port (1.2)."""

    def __init__(self, group: int, beacon_port: int, suffix: str = "") -> None:
        self.name = f"{HOST}:{suffix or os.getpid()}".encode()
        self.leader = self.name
        self.is_leader = False
        self.successor: bytes | None = None
        self.has_predecessor = False
        self.users: list[bytes] = []
        self._group = group
        self._beacon_port = beacon_port
        self._out: deque[bytes] = deque()
        self._some = asyncio.Event()
        self._waiting_since = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: asyncio.Task[None] | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._runs = asyncio.Event()
        self._runs.set()

    def hang(self) -> None:
        """Stop all activity, as after SIGSTOP; the connections stay open."""
        self._runs.clear()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._waiting_since = self._loop.time()
        self._server = await asyncio.start_server(self._accepted, HOST, 0)
        self._port: int = self._server.sockets[0].getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self._udp.setblocking(False)
        self._udp.bind((EVERYBODY, self._beacon_port))
        self._begin(self._announce())
        self._begin(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.close()
        for writer in self._writers:
            writer.close()
        self._udp.close()
        self._runs.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._tasks.append(asyncio.ensure_future(work))
        return self._tasks[-1]

    # beacons

    async def _announce(self) -> None:
        while True:
            await self._runs.wait()
            if not self.has_predecessor:
                service = str(self._port).encode()
                names = (self.leader, self.name, service)
                data = b"OPEN" + struct.pack(">H", self._group) + bytes(map(len, names)) + b"".join(names)
                self._udp.sendto(data, (EVERYBODY, self._beacon_port))
            await asyncio.sleep(OPEN_S)

    def _find(self) -> None:
        data = b"FIND" + struct.pack(">HB", self._group, len(self.name)) + self.name
        self._udp.sendto(data, (EVERYBODY, self._beacon_port))

    async def _listen(self) -> None:
        while True:
            data = await self._loop.sock_recv(self._udp, 512)
            await self._runs.wait()
            if struct.unpack_from(">H", data, 4)[0] != self._group:
                continue
            if data[:4] == b"FIND" and self.is_leader and data[7:] != self.name:
                self._find()
                self.is_leader = False
                if self._sending is not None:
                    self._sending.cancel()
            elif data[:4] == b"OPEN":
                leads, node, service = data[6:9]
                names = data[9:]
                self._opened(
                    names[:leads], names[leads : leads + node], names[leads + node : leads + node + service]
                )

    def _opened(self, leads: bytes, node: bytes, service: bytes) -> None:
        if self.successor is not None:
            return
        waited = self._loop.time() - self._waiting_since
        wanted = OWN_RING_S <= waited <= SELF_S if leads == self.leader else True
        if waited >= SELF_S if node == self.name else wanted:
            self.successor = node
            self._sending = self._begin(self._send(node.partition(b":")[0].decode(), int(service)))

    # links

    async def _send(self, host: str, port: int) -> None:
        """Send messages one by one, each after the `A` of the one before."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                while True:
                    while not self._out:
                        self._some.clear()
                        watching = asyncio.ensure_future(self._some.wait())
                        gone = asyncio.ensure_future(reader.read(1))
                        done, _ = await asyncio.wait((watching, gone), return_when=asyncio.FIRST_COMPLETED)
                        watching.cancel()
                        if gone in done:
                            raise ConnectionResetError
                        gone.cancel()
                        await asyncio.gather(watching, gone, return_exceptions=True)
                    await self._runs.wait()
                    writer.write(self._out[0])
                    assert await reader.readexactly(1) == b"A"
                    self._out.popleft()
            finally:
                writer.close()
                self.successor = None
                self._waiting_since = self._loop.time()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.has_predecessor:
            writer.close()
            return
        self.has_predecessor = True
        self._writers.append(writer)
        self._say(b"LOOP", struct.pack(">HBB", TTL, 0, len(self.name)) + self.name)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, size = struct.unpack(">4sH", await reader.readexactly(6))
                payload = await reader.readexactly(size)
                await self._runs.wait()
                if writer.is_closing():
                    return
                writer.write(b"A")
                self._received(kind, payload)
        await self._runs.wait()
        writer.close()
        self.has_predecessor = self.is_leader = False
        self._say(b"LOOP", struct.pack(">HBB", TTL, 1, len(self.name)) + self.name)

    def _received(self, kind: bytes, payload: bytes) -> None:
        if kind == b"USER":
            self.users.append(payload)
            self._say(kind, payload)
            return
        ttl, subtype, length = struct.unpack_from(">HBB", payload)
        name = payload[4 : 4 + length]
        if not ttl:
            return
        forwarded = struct.pack(">H", ttl - 1) + payload[2:]
        if subtype == 0 and name >= self.name:
            was_leader, self.leader, self.is_leader = self.is_leader, name, name == self.name
            if self.is_leader and not was_leader:
                self._find()
            if not self.is_leader:
                self._say(kind, forwarded)
        elif subtype == 1 and name != self.name:
            self.is_leader = False
            self._say(kind, forwarded)

    def _say(self, kind: bytes, payload: bytes) -> None:
        self._out.append(kind + struct.pack(">H", len(payload)) + payload)
        self._some.set()
