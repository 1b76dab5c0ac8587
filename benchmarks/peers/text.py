"""Penstock's text pub/sub edge as a separate program: `python -m services.pubsub` on a store that others may share.

As with TMQ, the few bytes of the protocol are encoded here, so that the benchmark does not depend on the measured code.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import ClassVar

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Operation, Shape, WirePeer, dial, read_until
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import init_store, store_url
from benchmarks.process import Workshop, free_port

ROOT = Path(__file__).parents[2]


def serve_text_command(
    store_port: int, text_port: int, link_port: int, health_port: int, neighbours: Sequence[int] = ()
) -> list[str]:
    """Return the command line that starts the edge. neighbours: ports of other stores' links."""
    settings = {
        "store.url": store_url(store_port),
        "edges.pubsub.listeners.text.port": text_port,
        "edges.pubsub.listeners.link.port": link_port,
        "health.port": health_port,
    }
    if neighbours:
        settings["edges.pubsub.neighbours"] = str([f"127.0.0.1:{port}" for port in neighbours])
    command = [sys.executable, "-m", "services.pubsub"]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def encode_send(tag: str, body: bytes = BODY) -> bytes:
    return b"SEND %s %s\n" % (tag.encode(), body)


def subscribe(sock: socket.socket, patterns: Sequence[str]) -> None:
    """Subscribe with the identifiers 1, 2, ... and wait until all subscriptions are active. Raises OSError."""
    converse(sock, [f"SUBSCRIBE {i} {pattern}" for i, pattern in enumerate(patterns, 1)])


def converse(sock: socket.socket, lines: Sequence[str]) -> None:
    """Send all lines at once, and read an OK for each."""
    send_lines(sock, lines)
    read_oks(sock, len(lines))


def send_lines(sock: socket.socket, lines: Sequence[str]) -> None:
    sock.sendall("".join(f"{line}\n" for line in lines).encode())


def read_oks(sock: socket.socket, count: int) -> None:
    """Read `count` OKs. Raises OSError on any other answer."""
    replies = read_until(sock, lambda data: data.count(b"\n") >= count or b"ERROR" in data)
    if replies != b"OK\n" * count:
        raise OSError(f"the edge answered {replies[-100:]!r}")


class Text(WirePeer):
    name = "text"
    title = "Penstock text pub/sub"
    promise = "SEND: in the log, written and fsynced (AOF, `appendfsync always`)"
    operations: ClassVar = (Operation.PUT,)
    link_port: int

    def __init__(
        self,
        workshop: Workshop,
        store: Store,
        name: str = "penstock-text",
        neighbours: Sequence[int] = (),
    ) -> None:
        super().__init__(workshop)
        self.store = store
        self.process_name = name
        self.neighbours = neighbours

    def start(self) -> None:
        """Set the store up, start the edge, and wait until it accepts a SEND. Raises NotRun."""
        self.store.start()
        init_store(self.store, self.workshop.subfolder(self.process_name))
        self.port, self.link_port = free_port(), free_port()
        command = serve_text_command(self.store.port, self.port, self.link_port, free_port(), self.neighbours)
        path = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        }
        self.daemon = self.workshop.start(self.process_name, command, self._is_ready, path)

    def _is_ready(self) -> None:
        with self.connect() as sock:
            converse(sock, ["SEND ready "])

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def version(self) -> str:
        return f"{package_version('penstock')} on {self.store.version()}"

    def connect(self) -> socket.socket:
        return dial(self.port)

    def create(self, queue: str) -> None:
        pass  # a tag needs no declaration

    def delete(self, queue: str) -> None:
        pass  # the store trims the log

    def put_load(self, shape: Shape, queue: str) -> Load:
        return self.load(shape, "line", encode_send(queue), ok="OK")

    def take_load(self, shape: Shape, queue: str) -> Load:
        raise NotImplementedError("messages are pushed to subscribers; there is no take")
