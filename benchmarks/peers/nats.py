"""NATS JetStream, file store: with defaults, and with `sync_interval: always`.

The stream is a work queue (acknowledged messages are deleted), as the other peers' queues are; and once more, with
defaults, it has the default retention, which keeps acknowledged messages and so has less work. One durable pull
consumer with explicit acknowledgement is shared by all connections.
"""

from __future__ import annotations

import json
import socket
import subprocess
from typing import Any

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Shape, WirePeer, dial, read_until
from benchmarks.process import Workshop, free_port
from benchmarks.tools import find_nats_server

FETCH = 100  # messages that one request of a pull consumer asks for, where more than one may be in flight
FETCH_EXPIRES_NS = 60_000_000_000
CONSUMER = "takers"
CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n'
PROMISE = "handed to the operating system; fsynced every 2 minutes, not awaited"
ALWAYS_PROMISE = "written and fsynced"
SERVER_CONF = """\
listen: "127.0.0.1:{port}"
server_name: penstock_bench
jetstream {{
  store_dir: "{folder}"
  {extra}
}}
"""


class JetStream(WirePeer):
    def __init__(self, workshop: Workshop, *, always: bool = False, retention: str = "workqueue") -> None:
        super().__init__(workshop)
        self.always = always
        self.retention = retention
        self.name = "nats" + "-always" * always + "-limits" * (retention == "limits")
        self.title = "NATS JetStream" + (", sync_interval: always" if always else " as shipped")
        if retention == "limits":
            self.title += ", keeps what is taken"
        self.promise = ALWAYS_PROMISE if always else PROMISE
        self.program = ""

    def start(self) -> None:
        self.program = find_nats_server()
        self.port = free_port()
        folder = self.workshop.subfolder(self.name)
        extra = "sync_interval: always" if self.always else ""
        (folder / "nats.conf").write_text(SERVER_CONF.format(port=self.port, folder=folder, extra=extra))
        command = [self.program, "-c", "nats.conf"]
        self.daemon = self.workshop.start(self.name, command, self._account)

    def _account(self) -> None:
        """Check that JetStream is ready, which happens a little after the port opens."""
        if "error" in self.request("INFO", {}):
            raise OSError("JetStream is not ready")

    def version(self) -> str:
        shown = subprocess.run([self.program, "--version"], capture_output=True, timeout=10)
        return shown.stdout.decode().strip().replace("nats-server: v", "")

    def connect(self) -> socket.socket:
        """Connect, and subscribe to an inbox of the connection's own: `inbox_of(sock)`."""
        sock = dial(self.port)
        read_until(sock, lambda data: data.startswith(b"INFO ") and data.endswith(b"\r\n"))
        sock.sendall(CONNECT + f"SUB {inbox_of(sock)} 1\r\n".encode() + b"PING\r\n")
        read_until(sock, lambda data: data.endswith(b"PONG\r\n"))
        return sock

    def request(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call JetStream's API and return the answer, which holds "error" on failure."""
        payload = json.dumps(body).encode() if body else b""
        with self.connect() as sock:
            sock.sendall(encode_pub(f"$JS.API.{subject}", inbox_of(sock), payload))
            data = read_until(sock, is_whole_message)
        line, _, rest = data.partition(b"\r\n")
        if line.startswith(b"HMSG"):  # no responders: JetStream is not up yet
            raise OSError("JetStream does not answer")
        answer: dict[str, Any] = json.loads(rest[: int(line.split()[-1])])
        return answer

    def create(self, queue: str) -> None:
        stream = {"name": queue, "subjects": [queue], "storage": "file", "retention": self.retention}
        consumer = {
            "durable_name": CONSUMER,
            "ack_policy": "explicit",
            "max_ack_pending": -1,
            "max_waiting": 8192,
        }
        for subject, body in (
            (f"STREAM.CREATE.{queue}", stream),
            (f"CONSUMER.DURABLE.CREATE.{queue}.{CONSUMER}", {"stream_name": queue, "config": consumer}),
        ):
            answer = self.request(subject, body)
            if "error" in answer:
                raise OSError(f"JetStream refused {subject}: {answer['error']}")

    def delete(self, queue: str) -> None:
        self.request(f"STREAM.DELETE.{queue}", {})

    def put_load(self, shape: Shape, queue: str) -> Load:
        sockets = [self.connect() for _ in range(shape.connections)]
        requests = [encode_pub(queue, inbox_of(sock), BODY) for sock in sockets]
        return Load("nats", sockets, requests, shape.window)

    def take_load(self, shape: Shape, queue: str) -> Load:
        batch = min(FETCH, shape.window)
        fetch = json.dumps({"batch": batch, "expires": FETCH_EXPIRES_NS}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{queue}.{CONSUMER}"
        sockets = [self.connect() for _ in range(shape.connections)]
        requests = [encode_pub(subject, inbox_of(sock), fetch) for sock in sockets]
        return Load("nats", sockets, requests, shape.window, per_request=batch)


def inbox_of(sock: socket.socket) -> str:
    return f"_INBOX.{sock.getsockname()[1]}"


def encode_pub(subject: str, reply_to: str, body: bytes) -> bytes:
    return f"PUB {subject} {reply_to} {len(body)}\r\n".encode() + body + b"\r\n"


def is_whole_message(data: bytes) -> bool:
    """Check for MSG <subject> <sid> [<reply to>] <bytes> and so many bytes (an HMSG's count includes its headers)."""
    line, found, rest = data.partition(b"\r\n")
    return bool(found) and len(rest) >= int(line.split()[-1]) + 2
