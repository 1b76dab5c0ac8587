"""Measure the interruption of service after a kill: python -m benchmarks.standstill [--rounds N] [--only NAME]

One `penstock up` runs with a store of its own. For each protocol, a message gets through, then a process is killed with
SIGKILL, and the time until the next message gets through is measured: sent and received by a client that retries (TMQ,
text, ring), or put into a transmission queue and received by the same edge (RQP/MCA with an exclusive queue, RQP/cast).
`ring, two nodes` is a request for a queue of a second system, through a ring of two nodes, of which the client's node
is killed. `tmq, out` is the time until a message that a client held when its edge was killed is delivered to another
client; if the store is killed, until that client gets its next message.
It prints medians and maxima; all times are saved in `standstill.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.kept import Kept, result_name
from benchmarks.machine import current_commit, describe
from benchmarks.process import free_port
from benchmarks.results import RESULTS
from protos import tmq
from services.store import Store, StoreError
from services.store.pipeline.async_client import AsyncClient

FOLDER = "/var/tmp"  # on a disk, as stores usually are
LONGEST_S = 120.0
READY_S = 60.0
ATTEMPT_S = 5.0  # a client reconnects after so long without an answer
PAUSE_S = 0.02  # between attempts
HOSTS = "127.0.0.77", "127.0.0.78"  # of RQP/cast and of beacons, one for each system
# as in docs/ring.md, "Two systems on one machine"
RING_TIMES = {"own_ring_s": 3, "self_s": 6, "open_s": 2, "find_s": 3}
RING_FRAME = struct.Struct(">I255s255sI")  # operation, sender_name, queue_id, message_size (ring.md 5.1)
RING_PUSH, RING_PULL, RING_OK = 1, 2, 5
FAR_QUEUES = """
metadata: {name: far}
"""
QUEUES = """
metadata: {name: tmq}
---
metadata: {name: ring}
---
metadata: {name: mca-away}
spec: {remote: {protocol: rqp-mca, queueId: 7, peers: [here]}}
---
metadata: {name: mca}
spec: {bindings: {rqpMca: {queueId: 7, exclusive: true}}}
---
metadata: {name: cast-away}
spec: {remote: {protocol: rqp-cast, key: 9}}
---
metadata: {name: cast}
spec: {bindings: {rqpCast: {key: 9}}}
"""


class System:
    """A running `penstock up` in a folder."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, announcement: dict[str, Any]) -> None:
        self.process, self.announcement = process, announcement
        self._lock = folder / "penstock-data" / "up.lock"

    @property
    def tenant(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._lock.read_text())
        return found

    def place(self, edge: str, listener: str) -> tuple[str, int]:
        place = self.announcement["edges"][edge]["listeners"][listener]
        return place["host"], place["port"]

    def kill(self, name: str) -> None:
        """Send SIGKILL to the store's server, or to the process of an edge."""
        while (pid := self._pid(name)) is None:
            time.sleep(PAUSE_S)
        os.kill(pid, signal.SIGKILL)

    def _pid(self, name: str) -> int | None:
        """Return the process's id; None while it is restarted."""
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:
                continue
            served = words[words.index("serve") + 1] if "serve" in words else ""
            if served == name or (name == "store" and "-server" in words[0]):
                return int(pid)
        return None


@contextmanager
def running(settings: dict[str, Any], queues: str = QUEUES) -> Iterator[System]:
    with tempfile.TemporaryDirectory(prefix="standstill-", dir=FOLDER) as name:
        folder = Path(name)
        (folder / "penstock.yaml").write_text(yaml.safe_dump(settings))
        (folder / "queues.yaml").write_text(queues)
        command = [sys.executable, "-P", "-m", "services.cli.main", "up", "--json"]
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "REDIS_URL"))
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=clean, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        with process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError((folder / "log").read_text())
                yield System(process, folder, json.loads(line))
            finally:
                process.kill()


@contextmanager
def joined() -> Iterator[System]:
    """Run two systems whose nodes form a ring, and yield one of them."""
    beacons = free_port()
    rings = [
        {
            "listeners": {"clients": {"port": 0}, "ring": {"port": free_port()}},
            "node": {"group": 7, "beacon_host": host, "beacon_port": beacons, "times": RING_TIMES},
        }
        for host in HOSTS
    ]
    with running(settings(HOSTS[1], rings[1]), FAR_QUEUES), running(settings(HOSTS[0], rings[0])) as system:
        yield system


def alone() -> AbstractContextManager[System]:
    return running(settings(HOSTS[0], {"listeners": {"clients": {"port": 0}, "ring": "off"}}))


def settings(cast_host: str, ring: dict[str, Any]) -> dict[str, Any]:
    """Return settings with free ports for all listeners; RQP's only peer is the system itself."""
    mca, request, find = free_port(), free_port(), free_port()
    any_port = {"port": 0}
    return {
        "health": any_port,
        "console": {"enabled": False},
        "edges": {
            "tmq": {"listeners": {"document": any_port, "reference": any_port}},
            "pubsub": {"listeners": {"text": any_port, "link": any_port}},
            "ring": ring,
            "rqp": {
                "listeners": {"mca": {"port": mca}},
                "mca": {"peers": {"here": {"addresses": [f"127.0.0.1:{mca}"]}}},
                "cast": {
                    "host": cast_host,
                    "request_port": request,
                    "findreceiver_port": find,
                    "peers": {"here": {"addresses": [f"{cast_host}:{request}"]}},
                },
            },
        },
    }


# Functions that get one message through


class TmqClient:
    """A TMQ connection with the queue open."""

    def __init__(self, system: System) -> None:
        self._socket = socket.create_connection(system.place("tmq", "document"), ATTEMPT_S)
        self._file = self._socket.makefile("rb")
        self._mqid = self._ask(tmq.encode_open(b"tmq"), 64)

    def _ask(self, request: bytes, size: int) -> bytes:
        self._socket.sendall(request)
        reply = self._file.read(size)
        if len(reply) < size:
            raise ConnectionError("the edge has gone")
        return reply

    def put(self, body: bytes) -> None:
        if self._ask(tmq.encode_enq(self._mqid, body), 1) != b"\1":
            raise ConnectionError("the message was refused")

    def take(self) -> bytes:
        """Return the next message, b"" if there is none."""
        size = int.from_bytes(self._ask(tmq.encode_dnq(self._mqid), 4), "big", signed=True)
        return self._file.read(size) if size > 0 else b""

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def tmq_message(system: System) -> None:
    client = TmqClient(system)
    try:
        client.put(b"hello")
        if not client.take():
            raise ConnectionError("there is no message")
        client.take()  # settles the previous message
    finally:
        client.close()


def tmq_taken(system: System) -> None:
    """Take a message that is already in the queue."""
    client = TmqClient(system)
    try:
        if not client.take():
            raise ConnectionError("there is no message")
        client.take()
    finally:
        client.close()


def text_message(system: System) -> None:
    with (
        socket.create_connection(system.place("pubsub", "text"), ATTEMPT_S) as line,
        line.makefile("rb") as replies,
    ):
        line.sendall(b"SUBSCRIBE 1 news\nSEND news hello\n")
        seen = [replies.readline() for _ in range(3)]
        if b"MESSAGE 1 hello\n" not in seen:
            raise ConnectionError(repr(seen))


def ring_message(system: System, queue: bytes = b"ring") -> None:
    with (
        socket.create_connection(system.place("ring", "clients"), ATTEMPT_S) as line,
        line.makefile("rb") as replies,
    ):
        for operation, body in ((RING_PUSH, b"hello"), (RING_PULL, b"")):
            line.sendall(RING_FRAME.pack(operation, b"benchmark", queue, len(body)) + body)
            answer, _, _, size = RING_FRAME.unpack(replies.read(RING_FRAME.size))
            replies.read(size)
            if answer != RING_OK:
                raise ConnectionError(f"answer {answer}")


def ring_passed(system: System) -> None:
    ring_message(system, b"far")


def carried(queue: str) -> Callable[[System], None]:
    """Return a function that carries a message from the transmission queue through the edge into the queue."""

    async def carry(system: System) -> None:
        store = Store(system.tenant["url"], "benchmark")
        try:
            away, here = await store.catalogue.find(f"{queue}-away"), await store.catalogue.find(queue)
            before = (await store.listing.stats(here))["added"]
            await AsyncClient(store.open_domain(away.domain).pipe).publish(
                away, [b"\0\0\0\5hello"], "benchmark"
            )
            async with asyncio.timeout(LONGEST_S):
                while (await store.listing.stats(here))["added"] == before:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE_S)
        finally:
            await store.close()

    return lambda system: asyncio.run(carry(system))


WAYS: dict[
    str, tuple[str, Callable[[System], None]]
] = {  # by name: the edge, and the function that gets one message through
    "tmq": ("tmq", tmq_message),
    "tmq, out": ("tmq", tmq_taken),
    "text": ("pubsub", text_message),
    "ring": ("ring", ring_message),
    "ring, two nodes": ("ring", ring_passed),
    "rqp-mca": ("rqp", carried("mca")),
    "rqp-cast": ("rqp", carried("cast")),
}


def until_through(way: Callable[[System], None], system: System) -> float:
    """Try until one message has got through; return the seconds that took."""
    began = time.monotonic()
    while True:
        try:
            way(system)
            return time.monotonic() - began
        except (OSError, ValueError, struct.error, StoreError):
            if time.monotonic() - began > LONGEST_S:
                raise
            time.sleep(PAUSE_S)


def measure(system: System, name: str, killed: str) -> float:
    """Return the seconds from the kill to the first message after it."""
    _, way = WAYS[name]
    if name == "tmq, out":
        return measure_held(system, killed)
    until_through(way, system)
    system.kill(killed)
    return until_through(way, system)


def measure_held(system: System, killed: str) -> float:
    """Kill a process while a client holds a message: the client loses it with its edge, and keeps it with the store."""
    holder = TmqClient(system)
    try:
        holder.put(b"held")
        if killed == "store":
            holder.put(b"next")
        holder.take()
        system.kill(killed)
        return until_through(tmq_taken if killed != "store" else lambda _: next_taken(holder), system)
    finally:
        holder.close()


def next_taken(holder: TmqClient) -> None:
    if holder.take() != b"next":
        raise ConnectionError("the store is away")
    holder.take()  # settles the message


def killable(name: str) -> tuple[str, ...]:
    """Return the processes to kill."""
    return (WAYS[name][0], "store")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.standstill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="kills of each process for each protocol (5)")
    parser.add_argument(
        "--only", action="append", choices=sorted(WAYS), default=[], help="one protocol; repeatable"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # `up` ends with us
    kept = Kept(options.results, result_name("standstill", [], options.only))
    found: dict[str, Any] = {
        "when": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": current_commit(),
        "machine": asdict(describe(Path(FOLDER))),
        "seconds": {},
    }
    print(f"{'protocol':15} {'killed':8} {'median s':>9} {'longest s':>9}")
    for name in options.only or WAYS:
        for killed in killable(name):
            with (joined if name == "ring, two nodes" else alone)() as system:
                times = [round(measure(system, name, killed), 2) for _ in range(options.rounds)]
            found["seconds"][f"{name} / {killed}"] = times
            kept.save(found)
            print(f"{name:15} {killed:8} {statistics.median(times):9.1f} {max(times):9.1f}", flush=True)
    kept.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
