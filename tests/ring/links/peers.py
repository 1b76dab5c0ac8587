"""Peers of a node driven by hand: raw octets over TCP, valid or invalid."""

from __future__ import annotations

import asyncio
import socket
import struct

from services.kit.net import sockets
from tests.live import PATIENCE_S, Place

SILENCE_S = 0.3  # how long a connection must be silent to count as silent


def message(kind: bytes, payload: bytes) -> bytes:
    """Return the octets of a message (ring.md 2.1)."""
    return kind + struct.pack(">H", len(payload)) + payload


def user(payload: bytes) -> bytes:
    return message(b"USER", payload)


def loop(ttl: int, subtype: int, rest: bytes = b"") -> bytes:
    """Return the octets of a LOOP (ring.md 2.3)."""
    return message(b"LOOP", struct.pack(">HB", ttl, subtype) + rest)


def leader(name: bytes, ttl: int = 65025) -> bytes:
    return loop(ttl, 0, bytes([len(name)]) + name)


def link_broken(name: bytes, ttl: int = 65025) -> bytes:
    return loop(ttl, 1, bytes([len(name)]) + name)


BREAK_LINK_FORCED = loop(65025, 2)


def open_beacon(group: int, leads: bytes, node: bytes, service: bytes) -> bytes:
    """Return an OPEN beacon (ring.md 3.1)."""
    lengths = bytes(map(len, (leads, node, service)))
    return b"OPEN" + struct.pack(">H", group) + lengths + leads + node + service


def find_beacon(group: int, leads: bytes) -> bytes:
    """Return a FIND beacon (ring.md 3.2)."""
    return b"FIND" + struct.pack(">H", group) + bytes([len(leads)]) + leads


def send_beacon(beacon: bytes, port: int, host: str = "127.255.255.255") -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        if family == socket.AF_INET:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.sendto(beacon, (host, port))


class Listening:
    """A listener for the beacons that nodes send to a port."""

    def __init__(self, port: int, host: str = "127.255.255.255") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((host, port))
        self.sock.setblocking(False)

    async def beacon(self, kind: bytes) -> bytes:
        """Return the next beacon of this kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                data = await asyncio.get_running_loop().sock_recv(self.sock, 1000)
                if data[:4] == kind:
                    return data

    def waiting(self) -> list[bytes]:
        """Return all beacons received so far."""
        found = []
        while True:
            try:
                found.append(self.sock.recv(1000))
            except BlockingIOError:
                return found

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()


class Wire:
    """One TCP connection, dialled or accepted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, place: Place) -> Wire:
        return cls(*await asyncio.open_connection(*place))

    def say(self, *octets: bytes) -> None:
        self.writer.write(b"".join(octets))

    async def hears(self, octets: bytes) -> None:
        """Check that exactly these octets are received next."""
        async with asyncio.timeout(PATIENCE_S):
            found = await self.reader.readexactly(len(octets))
        assert found == octets

    async def message(self) -> bytes:
        """Return the next whole message."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readexactly(6)
            return head + await self.reader.readexactly(int.from_bytes(head[4:], "big"))

    async def is_silent(self) -> bool:
        """Return whether no octets are received for a while."""
        try:
            async with asyncio.timeout(SILENCE_S):
                await self.reader.readexactly(1)
        except TimeoutError:
            return True
        return False

    async def rest(self) -> bytes:
        """Return all octets until the FIN; raise ConnectionResetError after a reset."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    async def ended(self) -> bool:
        """Wait until the connection ends, by FIN or reset."""
        try:
            await self.rest()
        except ConnectionResetError:
            return True
        return True

    def finish(self) -> None:
        """Send a FIN; octets from the node can still be read."""
        self.writer.write_eof()

    def reset(self) -> None:
        sockets.reset_on_close(self.writer.get_extra_info("socket"))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


class Tail:
    """A peer that announces itself and accepts a predecessor."""

    def __init__(self, name_host: str = "127.0.0.1", suffix: bytes = b"4711") -> None:
        self._host = name_host
        self._suffix = suffix
        self._came: asyncio.Queue[Wire] = asyncio.Queue()
        self._wires: list[Wire] = []

    async def __aenter__(self) -> Tail:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.name = b"%b:%b" % (self._host.encode(), self._suffix)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for wire in self._wires:
            wire.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._wires.append(Wire(reader, writer))
        self._came.put_nowait(self._wires[-1])

    @property
    def is_unconnected(self) -> bool:
        return self._came.empty()

    async def predecessor(self) -> Wire:
        """Return the next connection."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._came.get()

    def announce(self, group: int, beacon_port: int, leads: bytes = b"") -> None:
        service = b"%d" % self.port
        send_beacon(open_beacon(group, leads or self.name, self.name, service), beacon_port)

    async def called_by_node(self, group: int, beacon_port: int) -> Wire:
        """Wait until the node has read our beacon and connected."""
        self.announce(group, beacon_port)
        return await self.predecessor()
