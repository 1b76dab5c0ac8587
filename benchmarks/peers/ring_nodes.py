"""Nodes of Penstock's ring on this machine: processes of `python -m services.ring`, all on one store."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.peer import dial, read_until
from benchmarks.peers.redis import Store
from benchmarks.peers.ring import HEAD, PUSH, encode_request
from benchmarks.peers.rqp import path_of_ours
from benchmarks.peers.tmq import store_url
from benchmarks.process import Daemon, NotRun, Workshop, free_port

NODES, WINDOW, GROUP = 8, 64, 7
TIMEOUT_S = 60.0
POLL_S = 0.02
NOWHERE = "nowhere"  # a queue that no node serves: a push passes all nodes and returns
TIMES = {  # s: "short timers"
    "open_s": 0.5,
    "open_first_s": 0.2,
    "open_first_for_s": 2.0,
    "newcomer_s": 1.0,
    "own_ring_s": 1.0,
    "self_s": 2.0,
    "propose_s": 3.0,
    "find_s": 0.5,
    "vacant_s": 1.0,
    "ack_s": 1.5,
    "idle_s": 0.5,
    "silence_s": 3.0,
}


@dataclass(slots=True)
class RingNode:
    daemon: Daemon
    clients_port: int  # 0: none
    health_port: int
    has_begun: float  # start of its process, s of the monotonic clock

    def status(self) -> dict[str, Any]:
        """Return the node's status; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/ring", timeout=2) as reply:
                return dict(json.load(reply))
        except OSError:
            return {}


def node_command(store: Store, beacon_port: int, clients_port: int, health_port: int) -> list[str]:
    settings: dict[str, object] = {
        "store.url": store_url(store.port),
        "health.port": health_port,
        "edges.ring.listeners.clients": json.dumps({"port": clients_port}) if clients_port else "off",
        "edges.ring.listeners.ring.port": free_port(),
        "edges.ring.node.group": GROUP,
        "edges.ring.node.beacon_port": beacon_port,
        "edges.ring.node.window": WINDOW,
        **{f"edges.ring.node.times.{name}": value for name, value in TIMES.items()},
    }
    command = [sys.executable, "-m", "services.ring"]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@contextlib.contextmanager
def nodes(workshop: Workshop, store: Store, name: str) -> Iterator[list[RingNode]]:
    """Run the nodes; the first has a client port. Raises NotRun."""
    beacon_port = free_udp_port()
    running: list[RingNode] = []
    try:
        for number in range(NODES):
            clients, health = free_port() if not number else 0, free_port()
            began = time.monotonic()
            command = node_command(store, beacon_port, clients, health)
            daemon = workshop.start(
                f"{name}-{number}", command, lambda at=health: dial(at).close(), path_of_ours()
            )
            running.append(RingNode(daemon, clients, health, began))
        yield running
    finally:
        for node in running:
            workshop.stop(node.daemon)


def until_closed(running: list[RingNode]) -> float:
    """Wait until the nodes are one ring with one leader; return s of the monotonic clock. Raises NotRun."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_closed([node.status() for node in running]):
        if time.monotonic() > deadline:
            raise NotRun(f"{len(running)} nodes did not close a ring in {TIMEOUT_S:.0f} s")
        time.sleep(POLL_S)
    return time.monotonic()


def is_closed(statuses: list[dict[str, Any]]) -> bool:
    """Return True if all nodes form one ring and agree on one leader."""
    if not all(each.get("successor") for each in statuses) or len({each["leader"] for each in statuses}) > 1:
        return False
    after = {each["name"]: each["successor"]["name"] for each in statuses}
    passed, at = set(), statuses[0]["name"]
    while at in after and at not in passed:
        passed.add(at)
        at = after[at]
    return (
        len(passed) == len(statuses)
        and at == statuses[0]["name"]
        and sum(each["is_leader"] for each in statuses) == 1
    )


def kill(node: RingNode) -> float:
    """Send SIGKILL and return the time of it."""
    node.daemon.process.send_signal(signal.SIGKILL)
    now = time.monotonic()
    node.daemon.process.wait()
    return now


class Trips:
    """A client of one node, whose pushes pass all nodes of the ring and return unserved."""

    def __init__(self, port: int) -> None:
        self._sock = dial(port)
        self._read = b""

    def __enter__(self) -> Trips:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def go(self, count: int, ahead: int) -> float:
        """Send `count` pushes, `ahead` at a time; return the seconds. Raises NotRun if one did not return."""
        request = encode_request(PUSH, NOWHERE, b"x" * 100)
        began, sent = time.perf_counter(), 0
        for number in range(count):
            if sent < count and sent - number <= ahead // 2:
                more = min(ahead - (sent - number), count - sent)
                self._sock.sendall(request * more)
                sent += more
            self._expect()
        return time.perf_counter() - began

    def _expect(self) -> None:
        head = self._octets(HEAD.size)
        words = self._octets(HEAD.unpack(head)[-1])
        if words != b"no node serves this queue":
            raise NotRun(f"a push did not go round the ring: {words!r}")

    def _octets(self, count: int) -> bytes:
        if len(self._read) < count:
            missing = count - len(self._read)
            self._read += read_until(self._sock, lambda data: len(data) >= missing)
        octets, self._read = self._read[:count], self._read[count:]
        return octets


def free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
