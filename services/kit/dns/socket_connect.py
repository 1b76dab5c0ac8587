"""Connect a TCP socket to an address without a lookup.

`loop.sock_connect` is not used because uvloop resolves addresses like names, and waits for its lookups.
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
    """Connect a TCP socket, which may be bound already, and make it non-blocking.

    The caller closes it after an error or a cancellation. Raises OSError, also for an address of another family.
    """
    socket.inet_pton(sock.family, address[0])  # raises for a name, which `connect_ex` would resolve, blocking
    sock.setblocking(False)
    failure = sock.connect_ex(address)
    if failure in UNDER_WAY:
        await writable(sock)
        failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if not failure and sock.getsockname() == sock.getpeername():
        # Our own port happened to be the one called, and nothing listens there: TCP connects the socket to itself.
        failure = errno.ECONNREFUSED
    if failure:
        raise OSError(failure, os.strerror(failure))


async def writable(sock: socket.socket) -> None:
    """Wait until the socket is writable or has failed. One caller at a time per socket."""
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
