"""Fill a store with what a console reports beside queues and dead letters, so that its answers are not empty.

These are samples of busy queues, connections, peers, jobs and lines of the audit log.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from redis import Redis

from benchmarks.console.bench import Bench
from benchmarks.console.store import FULL, names, url
from benchmarks.peers.redis import Store as Server
from benchmarks.process import free_port
from protos import tmq
from services.store.model.buckets import CLASSES
from services.store.model.keys import DomainKeys

SAMPLES = 100_000  # as far back as a console reads
PERIOD_S = 10  # period in which each busy queue has two samples: its operations, and its state
PEERS, JOBS, CONNECTIONS = 150, 150, 150
KEY = DomainKeys("main").samples
CLASS = ",".join("5" if each == 3 else "0" for each in range(CLASSES))
ADD_SAMPLES = """
for i = 4, #ARGV do
  redis.call('XADD', KEYS[1], ARGV[1], 'v', 1, 'kind', 'queue', 'edge', 'tmq', 'process', 'tmq-1', 'n', ARGV[2],
    'ms', 10000, 'queue', ARGV[i], 'in', 5, 'out', 5, 'acked', 5, 'in_octets', 500, 'out_octets', 500,
    'returned', 0, 'rejected', 0, 'refused', '', 'put', ARGV[3], 'wait', ARGV[3])
  redis.call('XADD', KEYS[1], ARGV[1], 'v', 1, 'kind', 'depth', 'queue', ARGV[i], 'oldest_ms', 1000, 'len', 3,
    'leased', 1, 'dead', 0)
end
"""


class Samples:
    """Within `async with`, write samples of some queues each second, so that each queue has two in PERIOD_S."""

    def __init__(self, server: Server, queues: int) -> None:
        self._server = server
        self._names = names(queues)
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Samples:
        await asyncio.to_thread(self._fill)
        self._task = asyncio.create_task(self._go())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _fill(self) -> None:
        """Write past samples, in one transaction: no other writer may add a newer id in between."""
        now_ms = int(time.time() * 1000)
        rounds = SAMPLES // (2 * len(self._names))
        with self._server.connect() as connection, connection.pipeline(transaction=True) as together:
            together.delete(KEY)
            for each in range(rounds, 0, -1):
                self._add_samples(together, f"{now_ms - each * PERIOD_S * 1000}-*", self._names)
            together.execute()

    def _add_samples_now(self, some: Sequence[str]) -> None:
        with self._server.connect() as connection:
            self._add_samples(connection, "*", some)

    def _add_samples(self, connection: Redis, identifier: str, some: Sequence[str]) -> None:
        self._number += 1
        connection.eval(ADD_SAMPLES, 1, KEY, identifier, self._number, CLASS, *some)

    async def _go(self) -> None:
        while True:
            for first in range(PERIOD_S):
                await asyncio.to_thread(self._add_samples_now, self._names[first::PERIOD_S])
                await asyncio.sleep(1)


@contextmanager
def connections(bench: Bench) -> Iterator[None]:
    """Open connections to an edge that runs for this purpose."""
    port = free_port()
    listeners = {"document.port": port, "reference": "off"}
    settings = [f"edges.tmq.listeners.{name}={value}" for name, value in listeners.items()]
    words = [word for said in (*settings, "health.port=0") for word in ("--set", said)]
    command = [sys.executable, "-m", "services.cli.main", "serve", "tmq", "--store", url(bench.store), *words]
    edge = bench.store.workshop.start(
        "edge", command, lambda: _open(port).close(), {"PYTHONPATH": str(Path.cwd())}
    )
    lines = [_open(port) for _ in range(CONNECTIONS)]
    try:
        yield
    finally:
        for line in lines:
            line.close()
        bench.store.workshop.stop(edge)


def _open(port: int) -> socket.socket:
    """Open the queue on a new connection. Raises OSError."""
    line = socket.create_connection(("127.0.0.1", port), 10)
    line.sendall(tmq.encode_open(FULL.encode()))
    if not line.recv(tmq.MQID_BYTES, socket.MSG_WAITALL):
        raise OSError("the edge has closed the connection")
    return line


async def _ask(session: aiohttp.ClientSession, method: str, place: str, body: dict[str, Any]) -> None:
    """Send a request, again after each 429. Raises OSError."""
    while True:
        async with session.request(method, place, json=body) as response:
            if response.status != 429:
                if not response.ok:
                    raise OSError(f"{method} {place}: {response.status} {await response.text()}")
                return
        await asyncio.sleep(0.1)


@asynccontextmanager
async def busy(bench: Bench, session: aiohttp.ClientSession) -> AsyncIterator[None]:
    """Create everything. Peers and jobs add lines to the audit log, and stay."""
    with connections(bench):
        for number in range(PEERS):
            peer = {"protocol": "ring", "addresses": ["127.0.0.1"]}
            await _ask(session, "PUT", f"{bench.base}/peers/p{number:03}", peer)
        for _ in range(JOBS):
            await _ask(session, "POST", f"{bench.base}/queues/{FULL}/dead/redrive", {"ids": ["1-1"]})
        await _until_connections_are_listed(bench, session)
        async with Samples(bench.store, bench.queues):
            yield


async def _until_connections_are_listed(bench: Bench, session: aiohttp.ClientSession) -> None:
    """Wait until the API lists connections: an edge answers about them one second after its start."""
    while True:
        async with session.get(f"{bench.base}/connections") as response:
            if (await response.json())["items"]:
                return
        await asyncio.sleep(0.1)
