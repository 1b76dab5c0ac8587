"""Open, read and write connections that carry one message each, over non-blocking sockets (rqp_cast.md 1.2).

Functions raise OSError if the connection fails and PeerError for malformed input. Callers bound the waits.
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
REFUSED_AGAIN_S = (0.005, 0.02, 0.1, 0.3)  # then always the last
BIND_ADDRESS_NO_PORT = 24  # linux/in.h: connect() chooses the port, which may then serve several destinations

MessageT_co = TypeVar("MessageT_co", covariant=True)
MessageT = TypeVar("MessageT")


class EmptyConnection(PeerError):
    """The connection ended before its first octet; its reason is `truncated`."""


class Reader(Protocol[MessageT_co]):
    """An incremental parser of one message. Raises PeerError."""

    def receive(self, data: bytes) -> MessageT_co | None:
        """Return the message once `data` completes it."""

    def receive_eof(self) -> None:
        """Raise PeerError if the message is incomplete."""


async def connected(host: str, address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect from `host` to `address`. Raises ConnectionError after `timeout_s`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if host != ANY:
            sock.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
            sock.bind((host, 0))
        async with asyncio.timeout(timeout_s):
            await connect(sock, (address, port))
    except TimeoutError:
        sock.close()
        raise ConnectionError(f"no answer within {timeout_s:g} s") from None
    except BaseException:
        sock.close()
        raise
    return sock


async def connected_patiently(host: str, address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to a port that may not listen yet: retry for `timeout_s` while the connection is refused."""
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
    """Accept one connection from `address`, then stop listening; close connections from other addresses."""
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
    """Return the next octets; b"" at the end."""
    try:
        return sock.recv(READ_BYTES)
    except BlockingIOError:
        return await asyncio.get_running_loop().sock_recv(sock, READ_BYTES)


async def received_first(sock: socket.socket) -> bytes:
    """Return the first octets. Raises PeerError for a PROXY protocol header."""
    data = await received(sock)
    check_proxy(data)
    return data


async def message_of(sock: socket.socket, reader: Reader[MessageT]) -> MessageT:
    """Read the one message of a connection. Raises EmptyConnection if it ends without an octet."""
    is_silent = True
    while True:
        data = await received(sock)
        if not data:
            if is_silent:
                raise EmptyConnection("truncated")
            reader.receive_eof()
            raise ConnectionError("the connection ended early")
        is_silent = False
        if (message := reader.receive(data)) is not None:
            return message


async def sent(sock: socket.socket, data: bytes, on_last: Callable[[], None]) -> None:
    """Send all of `data`. `on_last` is called once the kernel has taken the last octet, before any other task runs."""
    left = memoryview(data)
    while True:
        with contextlib.suppress(BlockingIOError):
            left = left[sock.send(left) :]
        if not left:
            on_last()
            return
        await writable(sock)


async def send_message(
    host: str, address: str, port: int, timeout_s: float, message: Callable[[str], bytes]
) -> None:
    """Connect, send one message, close. message: returns it for the connection's local address."""
    sock = await connected(host, address, port, timeout_s)
    with sock:
        await sent(sock, message(sock.getsockname()[0]), lambda: None)
