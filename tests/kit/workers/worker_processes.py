"""Find the processes of an echo edge with workers."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tests.kit.echo_edge import frame
from tests.kit.harness import Program, exchange

ACCEPTED = 'penstock_connections_opened_total{edge="echo",listener="echo"}'
OPEN = 'penstock_connections{edge="echo",listener="echo"}'
READY = 'penstock_ready{edge="echo"}'
DEATHS = 'penstock_worker_deaths_total{edge="echo"}'
RECEIVED = 'penstock_received_bytes_total{edge="echo",listener="echo"}'


def children(program: Program) -> list[int]:
    """Return the process ids of the workers, and of the health child that answers for them."""
    pid = program.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def owner(program: Program, sock: socket.socket) -> int:
    """Return the child that has the other end of a connection."""
    found = holder(program, sock.getsockname()[1], 2, "01")
    assert found is not None, "no child has it"
    return found


def holder(program: Program, port: int, column: int, state: str) -> int | None:
    """Return the child with the socket of that port, as its own (1) or the other's (2), in that state."""
    wanted = f"{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = [row[9] for row in rows if row[column].endswith(":" + wanted) and row[3] == state]
    for pid in children(program):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry) in [f"socket:[{inode}]" for inode in inodes]:
                return pid
    return None


def connect_to_each(program: Program, number: int) -> dict[int, socket.socket]:
    """Return a connection to each of so many workers; the kernel decides which one a connection gets."""
    found: dict[int, socket.socket] = {}
    for _ in range(200):
        sock = program.connect()
        assert exchange(sock, frame(b"E", b"who")) == b"who"
        pid = owner(program, sock)
        if pid in found:
            sock.close()
        else:
            found[pid] = sock
        if len(found) == number:
            return found
    raise AssertionError("the kernel favours one worker")


def metrics_folder(worker: int) -> Path:
    """Return the folder of all workers' counts."""
    maps = Path(f"/proc/{worker}/maps").read_text().splitlines()
    return next(Path(line.split()[-1]).parent for line in maps if line.endswith(f"counter_{worker}.db"))
