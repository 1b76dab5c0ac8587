"""Penstock's RQP edge as a separate program: `python -m services.rqp` on a store that others may share.

As with TMQ, the few octets of the protocol are encoded here, so that the benchmark does not depend on the measured
code.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Operation, Shape, WirePeer, dial
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import init_store, penstock, store_url
from benchmarks.process import NotRun, Workshop, free_port

ROOT = Path(__file__).parents[2]
COMMAND_TIMEOUT_S = 30
CONFIRM = 0x20  # MSG_DATA_CONFIRM, packed
WINDOW = 200  # RELIABLE messages that an edge may have unconfirmed at its peer


def serve_rqp_command(store_port: int, mca_port: int, health_port: int, peer: int | None) -> list[str]:
    """Return the command line that starts the edge. peer: port of the receiving MCA of its queues."""
    settings = {
        "store.url": store_url(store_port),
        "edges.rqp.listeners.mca.port": mca_port,
        "health.port": health_port,
        "edges.rqp.cast.receives": "false",
        "edges.rqp.cast.sends": "false",
    }
    if peer is not None:
        settings["edges.rqp.mca.peers.there.addresses"] = json.dumps([f"127.0.0.1:{peer}"])
        settings["edges.rqp.mca.peers.there.window"] = WINDOW
    command = [sys.executable, "-m", "services.rqp"]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def encode_data(queue_id: int, body: bytes = BODY) -> bytes:
    """Encode MSG_DATA, RELIABLE, packed: 4 bits, 32 bits, 4 bits, 32 bits, the body."""
    return (1 << 36 | queue_id << 4).to_bytes(5, "big") + struct.pack(">I", len(body)) + body


def run_penstock(store: Store, *words: str, stdin: bytes = b"") -> None:
    """Run a command. Raises NotRun with its output."""
    command = [penstock(), *words, "--store", store_url(store.port)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=COMMAND_TIMEOUT_S)
    if done.returncode != 0:
        raise NotRun(f"{' '.join(words)}: {(done.stderr or done.stdout).decode(errors='replace').strip()}")


def declare(store: Store, specs: Mapping[str, Mapping[str, object]]) -> None:
    """Apply the documents of queues, with one command. Raises NotRun."""
    kind = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue"}
    documents = [
        json.dumps({**kind, "metadata": {"name": name}, "spec": spec}) for name, spec in specs.items()
    ]
    run_penstock(store, "queue", "apply", "-f", "-", stdin="\n---\n".join(documents).encode())


def fill(store: Store, queue: str, bodies: Sequence[bytes]) -> None:
    """Put messages into a queue; bodies contain no line feeds. Raises NotRun."""
    run_penstock(store, "put", queue, "--lines", stdin=b"\n".join(bodies) + b"\n")


class Rqp(WirePeer):
    """The RQP edge; queues get consecutive `queue_id`s."""

    name = "rqp"
    title = "Penstock RQP/MCA"
    promise = "RELIABLE MSG_DATA: in the queue, written and fsynced (AOF, `appendfsync always`)"
    operations: ClassVar = (Operation.PUT,)

    def __init__(self, workshop: Workshop, store: Store, name: str, peer: int | None = None) -> None:
        super().__init__(workshop)
        self.store = store
        self.process_name = name
        self.peer = peer
        self._numbers: dict[str, int] = {}

    def start(self) -> None:
        """Set the store up, start the edge, and wait until it listens. Raises NotRun."""
        self.store.start()
        init_store(self.store, self.workshop.subfolder(self.process_name))
        self.port = free_port()
        command = serve_rqp_command(self.store.port, self.port, free_port(), self.peer)
        self.daemon = self.workshop.start(self.process_name, command, self._is_ready, path_of_ours())

    def _is_ready(self) -> None:
        self.connect().close()

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def version(self) -> str:
        return self.store.version()

    def connect(self) -> socket.socket:
        return dial(self.port)

    def create(self, queue: str) -> None:
        self._numbers[queue] = number = len(self._numbers) + 1
        declare(self.store, {queue: {"bindings": {"rqpMca": {"queueId": number}}}})

    def delete(self, queue: str) -> None:
        run_penstock(self.store, "queue", "delete", queue, "--yes")

    def put_load(self, shape: Shape, queue: str) -> Load:
        request = encode_data(self._numbers[queue])
        sockets = [self.connect() for _ in range(shape.connections)]
        return Load("tmq-put", sockets, [request] * len(sockets), shape.window, ok_status=CONFIRM)

    def take_load(self, shape: Shape, queue: str) -> Load:
        raise NotImplementedError("the protocol has no take")


def path_of_ours() -> dict[str, str]:
    """Return the environment in which Penstock's programs are those of this folder."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
