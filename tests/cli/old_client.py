"""Provide an old TMQ client, as users of `penstock up` have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from protos.tmq import encode_create, encode_dnq, encode_enq, encode_open
from tests.cli.shell import Up
from tests.servers import eventually


class Client:
    """An old TMQ client: one request, one reply."""

    def __init__(self, connection: socket.socket, replies: BinaryIO, name: bytes) -> None:
        self._socket = connection
        self._file = replies
        self.created = self._ask(encode_create(name), 1) == b"\0"
        self._mqid = self._ask(encode_open(name), 64)

    def _ask(self, request: bytes, size: int) -> bytes:
        """Send a request, return its reply. Raises ConnectionError if the server has closed the connection."""
        self._socket.sendall(request)
        reply = self._file.read(size)
        if len(reply) < size:
            raise ConnectionError
        return reply

    def send(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def enqueue(self, body: bytes) -> bool:
        return self._ask(encode_enq(self._mqid, body), 1) == b"\1"

    def dequeue(self) -> bytes:
        size = int.from_bytes(self._ask(encode_dnq(self._mqid), 4), "big", signed=True)
        return self._file.read(size) if size > 0 else b""


@contextmanager
def connected(up: Up, queue: bytes) -> Iterator[Client]:
    with up.connect() as connection, connection.makefile("rb") as replies:
        yield Client(connection, replies, queue)


def takes(up: Up, queue: bytes) -> bytes:
    """Return the next message, after a server is reachable again."""

    def ask() -> bytes:
        with connected(up, queue) as client:
            return client.dequeue()

    found: bytes = eventually(ask)
    return found


def put(up: Up, queue: bytes, body: bytes) -> None:
    with connected(up, queue) as client:
        assert client.enqueue(body)
