"""Penstock's TMQ edge: `penstock serve tmq` on the same store that the raw XADD is measured on.

The few bytes of the protocol are encoded here rather than by `protos.tmq`, so that the benchmark does not depend on the
measured code.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from importlib.metadata import version as package_version
from pathlib import Path

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Shape, WirePeer, dial, read_until
from benchmarks.peers.redis import Store
from benchmarks.process import Daemon, NotRun, Workshop, find_program, free_port

CREATE, DELETE, OPEN, ENQ, DNQ = 0, 1, 2, 4, 5
STATUS_BYTES, MQID_BYTES = 1, 64
INIT_TIMEOUT_S = 30
ENQ_OK = 1  # dialect `document`: 1 is success for ENQ alone


def init_store_command(store_port: int) -> list[str]:
    """Return the command line that sets up an empty store."""
    return [penstock(), "store", "init", "--store", store_url(store_port)]


def serve_tmq_command(
    store_port: int, document_port: int, reference_port: int, health_port: int
) -> list[str]:
    """Return the command line that starts the edge."""
    settings = {
        "edges.tmq.listeners.document.port": document_port,
        "edges.tmq.listeners.reference.port": reference_port,
        "health.port": health_port,
    }
    command = [penstock(), "serve", "tmq", "--store", store_url(store_port)]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def penstock() -> str:
    return str(Path(sys.executable).with_name("penstock"))


def store_url(port: int) -> str:
    return f"redis://127.0.0.1:{port}"


def encode_named(code: int, queue: str) -> bytes:
    """Encode CREATE, DELETE or OPEN: u8 code, u32 length, name."""
    return struct.pack(">BI", code, len(queue)) + queue.encode()


def encode_enq(mqid: bytes, body: bytes = BODY) -> bytes:
    return struct.pack(">B64sI", ENQ, mqid, len(body)) + body


def encode_dnq(mqid: bytes) -> bytes:
    return struct.pack(">B64s", DNQ, mqid)


class Tmq(WirePeer):
    name = "tmq"
    title = "Penstock TMQ"
    promise = (
        "ENQ: in the queue, written and fsynced (AOF, `appendfsync always`). DNQ: leased to this connection, "
        "settled by its next request; comes back if the connection breaks"
    )

    def __init__(self, workshop: Workshop, store: Store, name: str = "penstock") -> None:
        super().__init__(workshop)
        self.store = store
        self.process_name = name

    def start(self) -> None:
        self.store.start()
        self.daemon, self.port = start_tmq(self.workshop, self.store, self.process_name)

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def version(self) -> str:
        return f"{package_version('penstock')} on {self.store.version()}"

    def connect(self) -> socket.socket:
        return dial(self.port)

    def create(self, queue: str) -> None:
        self._named(CREATE, queue)

    def delete(self, queue: str) -> None:
        self._named(DELETE, queue)

    def _named(self, code: int, queue: str) -> None:
        with self.connect() as sock:
            if exchange(sock, encode_named(code, queue), STATUS_BYTES) != b"\0":
                raise OSError(f"the edge refused request {code} for the queue {queue}")

    def open(self, shape: Shape, queue: str) -> tuple[list[socket.socket], bytes]:
        """Return connections that have the queue open, and its MQID."""
        sockets = [self.connect() for _ in range(shape.connections)]
        mqids = [exchange(sock, encode_named(OPEN, queue), MQID_BYTES) for sock in sockets]
        if mqids[0].startswith(b"<nil>"):
            raise OSError(f"the edge knows no queue {queue}")
        return sockets, mqids[0]

    def put_load(self, shape: Shape, queue: str) -> Load:
        sockets, mqid = self.open(shape, queue)
        return Load("tmq-put", sockets, [encode_enq(mqid)] * len(sockets), shape.window, ok_status=ENQ_OK)

    def take_load(self, shape: Shape, queue: str) -> Load:
        sockets, mqid = self.open(shape, queue)
        return Load("tmq-take", sockets, [encode_dnq(mqid)] * len(sockets), shape.window)

    def mixed_load(self, shape: Shape, queue: str, pairs: int) -> Load:
        """Return a load of `pairs` ENQs and as many DNQs in each request: the queue keeps its depth."""
        sockets, mqid = self.open(shape, queue)
        request = encode_enq(mqid) * pairs + encode_dnq(mqid) * pairs
        return Load("tmq-mixed", sockets, [request] * len(sockets), shape.window, per_request=2 * pairs)


def exchange(sock: socket.socket, request: bytes, reply_bytes: int) -> bytes:
    sock.sendall(request)
    return read_until(sock, lambda data: len(data) >= reply_bytes)


def init_store(store: Store, folder: Path) -> None:
    """Set the store up, once. Raises NotRun with the command's output."""
    if store.is_set_up:
        return
    command = init_store_command(store.port)
    if find_program(command[0]) is None:
        raise NotRun(f"{command[0]} is not there (`make .venv/.ready` installs it)")
    ended = subprocess.run(command, capture_output=True, cwd=folder, timeout=INIT_TIMEOUT_S)
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).decode(errors="replace").strip().splitlines()
        raise NotRun(f"penstock store init ended with {ended.returncode}: {said[-1] if said else ''}")
    store.is_set_up = True


def start_tmq(workshop: Workshop, store: Store, name: str) -> tuple[Daemon, int]:
    """Set the store up, start the edge, and wait until it creates a queue. Raises NotRun."""
    init_store(store, workshop.subfolder(name))
    port, reference_port, health_port = free_port(), free_port(), free_port()

    def ready() -> None:
        with dial(port) as sock:
            if exchange(sock, encode_named(CREATE, "ready"), STATUS_BYTES) != b"\0":
                raise OSError("the edge creates no queue yet")

    return workshop.start(name, serve_tmq_command(store.port, port, reference_port, health_port), ready), port
