"""Penstock's ring edge, its client port alone: `python -m services.ring`, without a node.

As with TMQ, the few octets of the protocol are encoded here, so that the benchmark does not depend on the measured
code.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from importlib.metadata import version as package_version
from pathlib import Path

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Shape, WirePeer, dial, read_until
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import init_store, store_url
from benchmarks.process import Workshop, free_port

ROOT = Path(__file__).parents[2]
CREATE, PUSH, PULL, DESTROY = range(4)
HEAD = struct.Struct(">I255s255sI")  # operation, sender_name, queue_id, message_size; the message follows
OK = 5


def serve_ring_command(store_port: int, clients_port: int, health_port: int) -> list[str]:
    """Return the command line that starts the edge."""
    settings = {
        "store.url": store_url(store_port),
        "edges.ring.listeners.clients.port": clients_port,
        "edges.ring.listeners.ring": "off",
        "health.port": health_port,
    }
    command = [sys.executable, "-m", "services.ring"]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def encode_request(operation: int, queue: str, body: bytes = b"") -> bytes:
    return HEAD.pack(operation, b"bench", queue.encode(), len(body)) + body


class Ring(WirePeer):
    name = "ring"
    title = "Penstock ring, client port"
    promise = (
        "push: in the queue, written and fsynced (AOF, `appendfsync always`). pull: leased to this connection, "
        "settled by its next request; comes back if the connection breaks"
    )

    def __init__(self, workshop: Workshop, store: Store) -> None:
        super().__init__(workshop)
        self.store = store

    def start(self) -> None:
        """Set the store up, start the edge, and wait until it creates a queue. Raises NotRun."""
        self.store.start()
        name = "penstock-ring"
        init_store(self.store, self.workshop.subfolder(name))
        self.port = free_port()
        command = serve_ring_command(self.store.port, self.port, free_port())
        path = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        }
        self.daemon = self.workshop.start(name, command, lambda: self.create("ring-is-ready"), path)

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def version(self) -> str:
        return f"{package_version('penstock')} on {self.store.version()}"

    def connect(self) -> socket.socket:
        return dial(self.port)

    def next_queue(self) -> str:
        """Return a name with a prefix: create_queue is refused if another peer of the store has created the queue."""
        return f"ring-{super().next_queue()}"

    def create(self, queue: str) -> None:
        self._ask(CREATE, queue)

    def delete(self, queue: str) -> None:
        self._ask(DESTROY, queue)

    def _ask(self, operation: int, queue: str) -> None:
        with self.connect() as sock:
            sock.sendall(encode_request(operation, queue))
            reply = read_until(sock, lambda data: len(data) >= HEAD.size)
        if HEAD.unpack_from(reply)[0] != OK:
            raise OSError(f"the edge refused request {operation} for {queue}: {reply[HEAD.size :]!r}")

    def put_load(self, shape: Shape, queue: str) -> Load:
        return self.load(shape, "ring", encode_request(PUSH, queue, BODY))

    def take_load(self, shape: Shape, queue: str) -> Load:
        return self.load(shape, "ring", encode_request(PULL, queue))
