"""Connections that carry one message each: opened, read, written (rqp_cast.md 1.2). All sockets are non-blocking.

What fails raises OSError, and what is no message PeerError; a wait is bounded by whoever waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Protocol, TypeVar

from protos.types import PeerError
from services.kit.dns import connect, writable
from services.rqp.cast.ports.ports import Port
from services.rqp.cast.ports.wrong_protocol import check_proxy

READ_BYTES = 256 << 10
ANY = "0.0.0.0"
REFUSED_AGAIN_S = (0.005, 0.02, 0.1, 0.3)  # the last one again and again
BIND_ADDRESS_NO_PORT = (
    24  # linux/in.h: the port is chosen by connect(), and so may serve several destinations
)

MessageT_co = TypeVar("MessageT_co", covariant=True)
MessageT = TypeVar("MessageT")


class EmptyConnection(PeerError):
    """`truncated`, and without an octet."""


class Reader(Protocol[MessageT_co]):
    """Makes a message of octets, however they were cut. PeerError for what is none."""

    def receive(self, data: bytes) -> MessageT_co | None: ...

    def receive_eof(self) -> None: ...


async def connected(host: str, address: str, port: int, timeout_s: float) -> socket.socket:
    """A connection from `host` to `address`. ConnectionError if there is none within `timeout_s`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if host != ANY:
            sock.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
            sock.bind((host, 0))
        await _connect(sock, (address, port), timeout_s)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect(sock: socket.socket, place: tuple[str, int], timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await connect(sock, place)
    except TimeoutError:
        raise ConnectionError(f"no answer within {timeout_s:g} s") from None


async def connected_patiently(host: str, address: str, port: int, timeout_s: float) -> socket.socket:
    """The same to a port that may be about to listen: being refused is not the end before `timeout_s` is."""
    loop = asyncio.get_running_loop()
    end, attempt = loop.time() + timeout_s, 0
    while True:
        try:
            return await connected(host, address, port, max(end - loop.time(), 0.001))
        except ConnectionRefusedError:
            pause_s = REFUSED_AGAIN_S[min(attempt, len(REFUSED_AGAIN_S) - 1)]
            if loop.time() + pause_s >= end:
                raise
            await asyncio.sleep(pause_s)
            attempt += 1


async def accepted(port: Port, address: str, on_stranger: Callable[[], None]) -> socket.socket:
    """The one connection that comes from `address`; others are closed. Nobody else is let in afterwards."""
    loop = asyncio.get_running_loop()
    while True:
        sock, place = await loop.sock_accept(port.sock)
        if place[0] == address:
            sock.setblocking(False)
            port.stop_listening()
            return sock
        sock.close()
        on_stranger()


async def received(sock: socket.socket) -> bytes:
    """What has come; b"" at the end."""
    try:
        return sock.recv(READ_BYTES)
    except BlockingIOError:
        return await asyncio.get_running_loop().sock_recv(sock, READ_BYTES)


async def received_first(sock: socket.socket) -> bytes:
    """What comes first. PeerError for the header of a load balancer."""
    data = await received(sock)
    check_proxy(data)
    return data


async def message_of(sock: socket.socket, reader: Reader[MessageT]) -> MessageT:
    """The one message of a connection. EmptyConnection if it ends before it begins."""
    is_silent = True
    while True:
        data = await received(sock)
        if not data:
            if is_silent:
                raise EmptyConnection("truncated")
            reader.receive_eof()
            raise ConnectionError("nothing more comes")
        is_silent = False
        if (message := reader.receive(data)) is not None:
            return message


async def sent(sock: socket.socket, data: bytes, on_last: Callable[[], None]) -> None:
    """All of `data`; `on_last` is called in the step in which the kernel took the last octet, and only then."""
    left = memoryview(data)
    while True:
        with contextlib.suppress(BlockingIOError):
            left = left[sock.send(left) :]
        if not left:
            on_last()
            return
        await writable(sock)


async def say(host: str, address: str, port: int, timeout_s: float, message: Callable[[str], bytes]) -> None:
    """Connects, sends what `message` makes of the address of ours that it leaves from, closes."""
    sock = await connected(host, address, port, timeout_s)
    with sock:
        await sent(sock, message(sock.getsockname()[0]), lambda: None)
