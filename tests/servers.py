"""Real servers for tests: on free ports, in temporary folders, stopped by process id.

They run with exactly the settings of the embedded store of `penstock up`; tests can add their own.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.exceptions import RedisError
from redis.retry import Retry

from services.store.redis.embedded import EmbeddedSettings, EmbeddedStore, server_binary
from services.system.pdeathsig import die_with_parent

PATIENCE_S = 60.0  # the longest wait for something that must happen; machines are shared
LONGEST_PAUSE_S = 0.25  # upper bound of the pause between two checks
PORTS = 20_000  # number of ports for servers of tests
MAXMEMORY = 512 << 20
GUARD_S = 0.006  # a little more than GUARD_MS of services/store/lua/schema.lua
SIDE_BY_SIDE = 5  # maximum of concurrent test processes
PROGRAMS = {"valkey": "", "redis": "redis-server"}  # as EmbeddedSettings.server: '' is the embedded Valkey
_given: set[int] = set()


def eventually(
    condition: Callable[[], Any],
    patience_s: float = PATIENCE_S,
    until: Callable[[Any], bool] = bool,
    pause_s: float = 0.01,
) -> Any:
    """Wait until the condition is true and return its value; ignore errors of a server that is starting.

    `until` decides whether a value of `condition` counts as true. Checks are at least `pause_s` apart, and more if one
    takes long, to leave the processor to the server. Raises AssertionError with the last value.
    """
    end = time.monotonic() + patience_s
    seen: Any = None
    while True:
        began = time.monotonic()
        try:
            if until(seen := condition()):
                return seen
        except (RedisError, OSError) as error:
            seen = error
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"it never came true: {seen}")
        time.sleep(max(pause_s, min(10 * (now - began), LONGEST_PAUSE_S)))


def free_port() -> int:
    """Return a free port, each only once.

    It is below the kernel's range for outgoing connections, one of which might take it while its server is down.
    """
    limits = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    while True:
        port = random.SystemRandom().randrange(*_slice(int(limits[0])))
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def _slice(end: int) -> tuple[int, int]:
    """Return the range of ports below `end` for this process, so that concurrent test processes use different ones."""
    number, count = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), SIDE_BY_SIDE
    first = end - PORTS + PORTS * (number % count) // count
    return first, first + PORTS // count


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Client:
    """A plain connection; replies are returned as the server sent them (octets, integers, lists)."""

    def __init__(self, port: int, timeout_s: float = 10.0) -> None:
        self._connection = Connection(
            host="127.0.0.1",
            port=port,
            protocol=2,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
        )

    def call(self, *command: Any) -> Any:
        """Send a command and return the reply. Raises ResponseError for an error."""
        self._connection.send_command(*command)
        return self.read_reply()

    def read_reply(self) -> Any:
        """Return the next reply, or the next message of a subscription."""
        return self._connection.read_response(disable_decoding=True)

    def close(self) -> None:
        self._connection.disconnect()


class Server:
    """A server process. `options` override settings of the embedded store; `environment` is added to this process's."""

    def __init__(
        self,
        program: str,
        directory: Path,
        options: Mapping[str, str] | None = None,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.program = program
        self.directory = directory
        self.port = port or free_port()
        self.options = dict(options or {})
        self._environment = dict(environment or {})
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def _command(self) -> list[str]:
        settings = EmbeddedSettings(self.directory, PROGRAMS[self.program], self.port, MAXMEMORY)
        added = [word for name, value in self.options.items() for word in (f"--{name}", value)]
        return [*EmbeddedStore(settings).command(), *added]

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = _spawn(self._command(), self.directory, self._environment)

    def start(self) -> Server:
        """Start the process and wait until it has loaded the AOF and answers."""
        self.spawn()
        eventually(self.answers)
        return self

    def runs(self) -> bool:
        """Return whether the process exists and is not stopped."""
        return self.process is not None and self.process.poll() is None and _state(self.pid) not in "TZ"

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended:\n{self.log()[-2000:]}"
        return bool(self.call("PING") == b"PONG")

    def log(self) -> str:
        path = self.directory / "store.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    @contextmanager
    def client(self, timeout_s: float = 10.0) -> Iterator[Client]:
        client = Client(self.port, timeout_s)
        try:
            yield client
        finally:
            client.close()

    def call(self, *command: Any) -> Any:
        with self.client() as client:
            return client.call(*command)

    def info(self, section: str) -> dict[str, str]:
        text = self.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    @contextmanager
    def configured(self, **settings: str) -> Iterator[None]:
        """Use other settings for a while (`_` stands for `-`); the store's next operation uses them."""
        names = {name: name.replace("_", "-") for name in settings}
        before = {name: self.call("CONFIG", "GET", real)[1] for name, real in names.items()}
        try:
            for name, value in settings.items():
                self.call("CONFIG", "SET", names[name], value)
            self._wait_for_guard()
            yield
        finally:
            for name, value in before.items():
                self.call("CONFIG", "SET", names[name], value)
            self._wait_for_guard()

    def _wait_for_guard(self) -> None:
        """Wait until the store's library reads the settings again: it caches them for GUARD_S."""
        until = self._clock() + GUARD_S
        while self._clock() < until:
            time.sleep(0.001)

    def _clock(self) -> float:
        seconds, microseconds = self.call("TIME")
        return int(seconds) + int(microseconds) / 1e6

    def empty(self) -> None:
        """Remove all data, but keep the functions, as loading them costs more than checking for them."""
        self.call("FLUSHALL", "SYNC")

    def clear(self) -> None:
        """Reset the server to its unused state."""
        self.empty()
        self.call("FUNCTION", "FLUSH", "SYNC")

    # signals

    def kill9(self) -> None:
        """Kill the process with SIGKILL: nothing is flushed, and clients get no notice."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the process with SIGSTOP: sockets stay open and buffer requests."""
        os.kill(self.pid, signal.SIGSTOP)
        eventually(lambda: _state(self.pid) == "T")

    def cont(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """End the process with SIGTERM, as an operator would."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait()

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def restart(self) -> Server:
        """Start the server again with the same port and data."""
        assert not self.is_running(), "it still runs"
        return self.start()

    def end(self) -> None:
        """End the server in any state."""
        if self.is_running():
            self.kill9()


class SentinelServer:
    """A Sentinel that watches `service`."""

    def __init__(self, directory: Path, service: str, primary: Server, quorum: int) -> None:
        self.port = free_port()
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self._lines = (
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {directory}",
            f"logfile {directory / 'sentinel.log'}",
            f"sentinel monitor {service} 127.0.0.1 {primary.port} {quorum}",
            f"sentinel down-after-milliseconds {service} 1500",
            f"sentinel failover-timeout {service} 5000",
            f"sentinel parallel-syncs {service} 2",
        )

    def start(self) -> SentinelServer:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "sentinel.conf"
        path.write_text("\n".join(self._lines) + "\n")
        self.process = _spawn([server_binary("redis-server"), str(path), "--sentinel"], self.directory)
        eventually(lambda: self.call("PING") == b"PONG")
        return self

    def call(self, *command: Any) -> Any:
        client = Client(self.port)
        try:
            return client.call(*command)
        finally:
            client.close()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _spawn(
    command: list[str], directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=partial(die_with_parent, os.getpid()),
        start_new_session=True,
    )


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
