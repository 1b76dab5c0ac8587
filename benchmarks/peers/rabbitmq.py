"""RabbitMQ, one quorum queue, publisher confirms and consumer acknowledgements.

It is started with a separate node name, ports, folders and epmd, so that all of it ends with the run and another
RabbitMQ on the machine is not affected.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from benchmarks.generator import Load
from benchmarks.peers import amqp
from benchmarks.peers.peer import BODY, Shape, WirePeer, dial
from benchmarks.process import NotRun, Workshop, find_program, free_port

# Debian's command of this name changes user and folders; the script behind it does neither.
SCRIPTS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
SERVER_CONF = """\
listeners.tcp.1 = 127.0.0.1:{port}
log.console = true
log.file = false
heartbeat = 0
"""


class QuorumQueue(WirePeer):
    name = "rabbitmq"
    title = "RabbitMQ quorum queue"
    promise = "confirmed when a majority (here one node) has written and fsynced its Raft log"

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self.script = ""

    def start(self) -> None:
        self.script = find_program(*SCRIPTS) or ""
        epmd = find_program("epmd")
        if not self.script or not epmd:
            raise NotRun("RabbitMQ is not installed (Debian: rabbitmq-server)")
        self.port, epmd_port = free_port(), free_port()
        self.workshop.start(
            "epmd",
            [epmd, "-port", str(epmd_port), "-address", "127.0.0.1"],
            lambda: dial(epmd_port).close(),
        )
        environment = self._environment(self.workshop.subfolder(self.name), epmd_port)
        self.daemon = self.workshop.start(
            self.name, [self.script], lambda: self.connect().close(), environment
        )

    def _environment(self, folder: Path, epmd_port: int) -> dict[str, str]:
        (folder / "rabbitmq.conf").write_text(SERVER_CONF.format(port=self.port))
        (folder / "plugins").write_text("[].\n")
        return {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"penstock_bench_{os.getpid()}@localhost",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "none.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "true",  # the script then becomes the server instead of watching it
        }

    def version(self) -> str:
        with dial(self.port) as sock:
            start = amqp.call(sock, b"AMQP\0\0\x09\x01", amqp.CONNECTION_START)
        _, _, rest = start.partition(b"\x07versionS")
        return rest[4 : 4 + int.from_bytes(rest[:4])].decode()

    def connect(self) -> socket.socket:
        sock = dial(self.port)
        amqp.greet(sock)
        return sock

    def create(self, queue: str) -> None:
        with self.connect() as sock:
            amqp.declare_quorum_queue(sock, queue)

    def delete(self, queue: str) -> None:
        with self.connect() as sock:
            amqp.delete_queue(sock, queue)

    def put_load(self, shape: Shape, queue: str) -> Load:
        load = self.load(shape, "amqp-put", amqp.encode_publish(queue, BODY))
        for sock in load.sockets:
            amqp.select_confirms(sock)
        return load

    def take_load(self, shape: Shape, queue: str) -> Load:
        load = self.load(shape, "amqp-take", amqp.encode_consume(queue))
        for sock in load.sockets:
            amqp.set_prefetch(sock, shape.window)
        return load
