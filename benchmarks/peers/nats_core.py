"""NATS without JetStream: PUB and SUB, without storage or acknowledgements."""

from __future__ import annotations

import socket
import subprocess

from benchmarks.peers.peer import BODY, dial, read_until
from benchmarks.process import Daemon, Workshop, free_port
from benchmarks.tools import find_nats_server

CONNECT = b'CONNECT {"verbose":false,"pedantic":false}\r\n'


class NatsCore:
    """A server with default settings. It closes slow consumers (64 MiB pending, or 10 s)."""

    name = "nats-core"
    title = "NATS core"
    daemon: Daemon
    port: int

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.program = ""

    def start(self) -> None:
        """Start the server. Raises NotRun."""
        self.program = find_nats_server()
        self.port = free_port()
        command = [self.program, "-a", "127.0.0.1", "-p", str(self.port)]
        self.daemon = self.workshop.start(self.name, command, lambda: self.connect().close())

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def version(self) -> str:
        shown = subprocess.run([self.program, "--version"], capture_output=True, timeout=10)
        return shown.stdout.decode().strip().replace("nats-server: v", "")

    def connect(self) -> socket.socket:
        sock = dial(self.port)
        read_until(sock, lambda data: data.startswith(b"INFO ") and data.endswith(b"\r\n"))
        _settle(sock, CONNECT)
        return sock

    def subscribe(self, subject: str) -> socket.socket:
        """Return a connection whose subscription is active."""
        sock = self.connect()
        _settle(sock, f"SUB {subject} 1\r\n".encode())
        return sock


def _settle(sock: socket.socket, request: bytes) -> None:
    """Send a request and wait until the server has processed it."""
    sock.sendall(request + b"PING\r\n")
    read_until(sock, lambda data: data.endswith(b"PONG\r\n"))


def encode_pub(subject: str, body: bytes = BODY) -> bytes:
    return f"PUB {subject} {len(body)}\r\n".encode() + body + b"\r\n"
