"""The trivial server for measuring the Python generator's ceiling: the Python version of load/sink.c."""

from __future__ import annotations

import select
import socket
import sys
import time

READ_BYTES = 1 << 18


def run_sink(request_bytes: int, reply: bytes, seconds: float) -> int:
    """Count bytes and acknowledge each request until standard input ends or time is up."""
    received: dict[int, int] = {}
    clients: dict[int, socket.socket] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener, select.epoll() as poll:
        print(listener.getsockname()[1], flush=True)
        poll.register(listener, select.EPOLLIN)
        poll.register(sys.stdin, select.EPOLLIN)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for fd, _ in poll.poll(1):
                if fd == sys.stdin.fileno():
                    return 0
                if fd == listener.fileno():
                    client, _ = listener.accept()
                    clients[client.fileno()] = client
                    poll.register(client, select.EPOLLIN)
                elif data := clients[fd].recv(READ_BYTES):
                    whole, received[fd] = divmod(received.get(fd, 0) + len(data), request_bytes)
                    clients[fd].sendall(reply * whole)
                else:
                    clients.pop(fd).close()
                    received.pop(fd, None)
    return 0
