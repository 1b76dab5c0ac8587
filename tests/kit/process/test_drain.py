"""Test the drain of a real process: in order, bounded, and at once after a second signal."""

from __future__ import annotations

import asyncio
import signal
import socket
import time

import pytest

from services.kit.config.settings import DrainSettings
from services.kit.process.drain import drain
from services.kit.readiness import Readiness
from services.kit.startup_sigterm import stop_signals
from tests.kit.echo_edge import frame
from tests.kit.harness import PATIENCE_S, Program, Server, eventually, exchange, receive, until


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_idle_process_drains_at_once(signum: signal.Signals) -> None:
    with Program() as program:
        idle = program.connect()
        assert exchange(idle, frame(b"E", b"hello")) == b"hello"
        assert program.page("/readyz") == (200, "ok\n")
        started = time.monotonic()
        program.signal(signum)
        assert is_closed(idle)
        idle.close()
        assert program.wait() == 0
        assert time.monotonic() - started < PATIENCE_S / 2
        assert program.printed == ["stop_taking", "close"]
        assert [event["hurried"] for event in program.events("drained")] == [False]


def test_drain_follows_its_order() -> None:
    with Program("drain.grace_s=1") as program:
        busy = program.connect()
        assert exchange(busy, frame(b"E", b"hello")) == b"hello"
        program.signal(signal.SIGTERM)
        eventually(lambda: program.page("/readyz") == (503, "accepting: draining\n"))
        assert program.page("/healthz") == (200, "ok\n")
        # Other programs do not know yet: during the grace period all are served as before.
        late = program.connect()
        assert exchange(late, frame(b"E", b"newcomer")) == b"newcomer"
        assert program.printed == []
        eventually(lambda: program.printed == ["stop_taking"] or program.process.poll() is not None)
        assert is_closed(late)
        assert is_closed(busy)
        with pytest.raises(ConnectionRefusedError):
            program.connect()
        late.close()
        busy.close()
        assert program.wait() == 0


def test_requests_under_way_are_finished() -> None:
    with Program() as program, program.connect() as sock:
        sock.sendall(frame(b"W", b"0.5"))
        assert exchange(sock, frame(b"E", b"the work has begun")) == b"the work has begun"
        program.signal(signal.SIGTERM)
        assert receive(sock) == b"done"
        assert is_closed(sock)
        sock.close()
        assert program.wait() == 0
        assert program.events("drain_reset") == []


def test_remaining_connections_are_reset() -> None:
    with Program("drain.timeout_s=0.3") as program, program.connect() as sock:
        sock.sendall(frame(b"W", b"60"))
        assert exchange(sock, frame(b"E", b"begun")) == b"begun"
        program.signal(signal.SIGTERM)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        assert program.wait() == 0
        assert program.events("drain_reset")[0]["connections"] == 1
        assert program.printed == ["stop_taking", "close"]


def test_second_signal_ends_at_once() -> None:
    with Program() as program, program.connect() as sock:
        sock.sendall(frame(b"W", b"60"))
        assert exchange(sock, frame(b"E", b"begun")) == b"begun"
        program.signal(signal.SIGTERM)
        program.event("draining")
        started = time.monotonic()
        program.signal(signal.SIGTERM)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        assert program.wait() == 1
        assert time.monotonic() - started < PATIENCE_S / 2
        assert program.events("drained")[0]["hurried"] is True
        assert program.printed[-1] == "close"


def test_port_in_use_is_one_line_and_status_2() -> None:
    with Program() as first:
        port = first.port
        with Program(f"edges.echo.listeners.echo.port={port}") as second:
            assert second.wait() == 2
            expected = f"penstock: cannot listen on 127.0.0.1 port {port}: Address already in use"
            assert any(line.get("line", "").startswith(expected) for line in second.log)
            assert second.printed == ["close"]


def test_bad_settings_are_lines_and_status_2() -> None:
    with Program("edges.echo.listeners.echo.port=x", "log.level=LOUD") as program:
        assert program.wait() == 2
        (line,) = [event["line"] for event in program.log]
        assert line.startswith("penstock: log.level: must be 'DEBUG', ")


@pytest.mark.parametrize("workers", [1, 3])
def test_stop_during_startup_ends_the_process(workers: int) -> None:
    with Program(workers=workers) as program:
        program.event("health_listening")
        program.signal(signal.SIGTERM)
        assert program.wait() == 0


class Stubborn:
    """An edge with failing drain steps."""

    readiness = Readiness()

    async def stop_taking(self) -> None:
        raise RuntimeError("no")

    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_failing_edge_does_not_block_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.process.drain.CLOSE_TIMEOUT_S", 0.1)
    async with Server() as server:
        client = await server.client()
        await server.session()
        assert await drain([server.listener], Stubborn(), DrainSettings(), asyncio.Event())
        assert await client.ended() == "fin"


class Busy:
    """An edge with more work than there is time for."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.readiness = Readiness()

    async def stop_taking(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append("stop_taking")

    async def close(self) -> None:
        self.ended.append("close")


async def test_edge_work_is_cancelled_after_the_timeout(caplog: pytest.LogCaptureFixture) -> None:
    """Check that edge work is cancelled after the timeout, with a warning and without an error."""
    edge = Busy()
    assert await drain([], edge, DrainSettings(spread_s=0.0, timeout_s=0.1), asyncio.Event())
    assert edge.ended == ["stop_taking", "close"]
    assert [line.levelname for line in caplog.records if line.levelname != "INFO"] == ["WARNING"]


async def test_sessions_are_drained_over_time() -> None:
    async with Server() as server:
        for _ in range(20):
            await server.client()
        await until(lambda: len(server.sessions) == 20)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await server.listener.drain(spread_s=60)
        assert 0.15 < loop.time() - started < 5  # at least a hundred a second, even with a longer spread_s
        started = loop.time()
        await server.listener.drain(spread_s=0)
        assert loop.time() - started < 0.15
        assert all("drain" in session.calls for session in server.sessions)


async def test_connection_admitted_during_the_drain_is_drained() -> None:
    async with Server() as server:
        # connected, but the loop has not run since
        with socket.create_connection((server.host, server.port), PATIENCE_S) as client:
            server.listener.stop_accepting()
            await server.listener.drain(0.0)
            session = await server.session()
            await until(lambda: "drain" in session.calls)
            assert await asyncio.to_thread(client.recv, 1) == b""


def test_ignored_sighup_stays_ignored() -> None:
    """Check that an ignored SIGHUP stays ignored, as in a process started by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in stop_signals()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.SIGHUP in stop_signals()
