"""A TCP connection to an address, and nothing looked up on the way.

Not `loop.sock_connect`: that of uvloop looks up addresses, too, as if they were names, and waits in line with them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

Address = tuple[Any, ...]  # as `socket.connect` takes it; the host's address first

UNDER_WAY = (errno.EINPROGRESS, errno.EINTR)


async def connect(sock: socket.socket, address: Address) -> None:
    """Connects a TCP socket, which may be bound already; it is non-blocking from then on.

    Who gives up waiting closes it. So does who gets an OSError, also for what is no address of the socket's family.
    """
    socket.inet_pton(
        sock.family, address[0]
    )  # anything else `connect_ex` would look up, and all would wait for it
    sock.setblocking(False)
    failure = sock.connect_ex(address)
    if failure in UNDER_WAY:
        await writable(sock)
        failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if not failure and sock.getsockname() == sock.getpeername():
        # Nobody listens, and our own port was by chance the one called: TCP connects such a socket with itself.
        failure = errno.ECONNREFUSED
    if failure:
        raise OSError(failure, os.strerror(failure))


async def writable(sock: socket.socket) -> None:
    """Returns when it takes octets, or has failed. Nobody else waits for that at the same time."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def is_ready() -> None:
        loop.remove_writer(sock)
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(sock, is_ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock)
