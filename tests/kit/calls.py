"""Test a dialler in this loop, and servers that do not answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.connection import Connection
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.session.session import Wire
from tests.kit.echo_edge import LENGTH, EchoSession
from tests.kit.harness import PATIENCE_S, until


class CallingSession(EchoSession):
    """A session that sends requests to an echo session; `heard` is all that it received."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.heard = b""

    def received(self, data: bytes, now: float) -> None:
        self.calls.append("received")
        self.heard += data

    async def ask(self, request: bytes) -> bytes:
        """Return the answer to a frame."""
        begin = len(self.heard) + LENGTH.size
        self.wire.write(request)
        await until(lambda: len(self.heard) >= begin)
        end = begin + LENGTH.unpack_from(self.heard, begin - LENGTH.size)[0]
        await until(lambda: len(self.heard) >= end)
        return self.heard[begin:end]


class Calls:
    """A dialler; `sessions` holds every session it made."""

    def __init__(self, factory: Callable[[Wire], EchoSession] | None = None, **settings: Any) -> None:
        self.sessions: list[EchoSession] = []
        self.metrics = Metrics("echo")
        self.budget = Budget(1 << 28)
        self._make = factory or CallingSession
        self.dialler = Dialler("out", DialSettings(**settings), self.budget, self.metrics, Budget(1 << 28))

    def _session(self, wire: Wire) -> EchoSession:
        session = self._make(wire)
        self.sessions.append(session)
        return session

    async def __aenter__(self) -> Calls:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.dialler.stop_opening()
        self.dialler.abort_all()
        assert await self.dialler.closed(PATIENCE_S)
        assert self.budget.total == 0, "input is still counted as held"

    async def connect(self, port: int, host: str = "127.0.0.1") -> Connection:
        async with asyncio.timeout(PATIENCE_S):
            return await self.dialler.connect(host, port, self._session)

    async def call(self, port: int, host: str = "127.0.0.1") -> CallingSession:
        """Return a connection's session, once it is open."""
        connection = await self.connect(port, host)
        session = self.sessions[-1]
        assert isinstance(session, CallingSession)
        assert session.wire is connection
        return session

    async def fails(self, port: int, host: str = "127.0.0.1") -> OSError:
        """Return the reason why the connection failed."""
        try:
            await self.connect(port, host)
        except OSError as error:
            return error
        raise AssertionError("it was answered")

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": "echo", **labels}) or 0.0


@contextlib.contextmanager
def mute() -> Iterator[int]:
    """Return a port whose connections the kernel accepts, and no program answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """Return a port where not even the kernel answers: its backlog is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]
