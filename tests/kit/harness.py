"""Provide a listener with echo sessions in this loop, and echo edges in processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import struct
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any, cast

from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.listener import Listener, ListenerSettings
from services.kit.session.session import Wire
from tests.kit.echo_edge import LENGTH, EchoSession

ROOT = Path(__file__).parents[2]
PATIENCE_S = 40.0  # the longest wait for an event that must happen; machines are shared


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait without a loop until the condition is true; return its value."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, "the condition never became true"
        time.sleep(0.02)
    return value


class Server:
    """A listener in the running loop; `sessions` holds every session it made."""

    def __init__(
        self, factory: Callable[[Wire], EchoSession] | None = None, budget: int = 1 << 28, **settings: Any
    ):
        self.sessions: list[EchoSession] = []
        self._clients: list[Client] = []
        self.metrics = Metrics("echo")
        self.budget = Budget(budget)
        self._make = factory or EchoSession
        self.listener = Listener(
            "here", ListenerSettings(port=0, **settings), self._session, self.budget, self.metrics
        )

    def _session(self, wire: Wire) -> EchoSession:
        session = self._make(wire)
        self.sessions.append(session)
        return session

    async def __aenter__(self) -> Server:
        self.host, self.port = await self.listener.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.listener.stop_accepting()
        for client in self._clients:
            await client.close()
        self.listener.abort_all()
        assert await self.listener.closed(PATIENCE_S)
        assert self.budget.total == 0, "input is still counted as held"

    async def session(self, number: int = 0) -> EchoSession:
        """Return the session of that number, once it exists."""
        await until(lambda: len(self.sessions) > number)
        return self.sessions[number]

    async def client(self, host: str | None = None, **tls: Any) -> Client:
        client = Client(*await asyncio.open_connection(host or self.host, self.port, **tls))
        self._clients.append(client)
        return client

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": "echo", **labels}) or 0.0

    def refusals(self, reason: str) -> float:
        return self.value("penstock_refusals_total", reason=reason)


class Client:
    """A peer of an echo session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.socket: socket.socket = writer.get_extra_info("socket")

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def stop_reading(self) -> None:
        """Stop reading, so that the server's output fills our buffer, both kernels' and then the server's."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def read_on(self) -> None:
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    async def answer(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            (size,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
            return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Return everything up to the server's FIN; raise ConnectionResetError on a reset."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    async def ended(self) -> str:
        """Return how the server ended the connection: "fin" or "reset"."""
        try:
            await self.rest()
        except ConnectionResetError:
            return "reset"
        return "fin"

    def reset(self) -> None:
        reset_on_close(self.socket)
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def reset_on_close(sock: Any) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Program:
    """An echo edge in a separate process, with its log and its output."""

    def __init__(
        self, *settings: str, workers: int = 1, group: bool = False, flags: Sequence[str] = ()
    ) -> None:
        """Start it. `group`: lead its own process group, as at a terminal. `flags`: besides those of settings."""
        flags = [*flags, *(part for setting in ("health.port=0", *settings) for part in ("--set", setting))]
        command = [sys.executable, "-m", "tests.kit.echo_edge", "--workers", str(workers), *flags]
        # the parent process of the tests may ignore it
        hangup = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
        self.process = Popen(
            command,
            cwd=ROOT,
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            start_new_session=group,
            preexec_fn=hangup,
        )
        self.log: list[dict[str, Any]] = []
        self.printed: list[str] = []
        self._sockets: list[socket.socket] = []
        self._readers = [Thread(target=self._read_log), Thread(target=self._read_output)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            sock.close()
        self.process.kill()
        self.wait()

    def _read_log(self) -> None:
        for line in self.process.stderr or ():
            self.log.append(json.loads(line) if line.startswith("{") else {"line": line.rstrip()})

    def _read_output(self) -> None:
        for line in self.process.stdout or ():
            self.printed.append(line.rstrip())

    def events(self, action: str) -> list[dict[str, Any]]:
        return [event for event in list(self.log) if event.get("action") == action]

    def event(self, action: str, number: int = 1) -> dict[str, Any]:
        """Return the event of that number, once it is logged."""
        found: list[dict[str, Any]] = eventually(lambda: self.events(action)[number - 1 :])
        return found[0]

    @property
    def port(self) -> int:
        return int(self.event("listening")["port"])

    def connect(self) -> socket.socket:
        self._sockets.append(socket.create_connection(("127.0.0.1", self.port), PATIENCE_S))
        return self._sockets[-1]

    def page(self, path: str) -> tuple[int, str]:
        """Return status and text of a health page."""
        port = self.event("health_listening")["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def samples(self) -> dict[str, float]:
        """Return the samples of /metrics: name and labels as written there, and value."""
        lines = [line for line in self.page("/metrics")[1].splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def wait(self) -> int:
        """Wait for its exit status; afterwards the log is complete."""
        status = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return status


def exchange(sock: socket.socket, request: bytes) -> bytes:
    """Exchange one frame on a blocking socket; return the answer."""
    sock.sendall(request)
    return receive(sock)


def receive(sock: socket.socket) -> bytes:
    (size,) = LENGTH.unpack(_exactly(sock, LENGTH.size))
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


__all__ = ["PATIENCE_S", "Client", "Program", "Server", "eventually", "exchange", "receive", "until"]
