"""Test dialled connections, and all ways in which dialling fails."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from services.kit.config.settings import DrainSettings
from services.kit.dns import tcp_connect
from services.kit.net.dialler import DialSettings
from services.kit.process.drain import drain
from services.kit.readiness import Readiness
from services.kit.session.session import Wire
from tests.kit.calls import CallingSession, Calls, deaf, mute
from tests.kit.echo_edge import EchoSession, frame
from tests.kit.harness import Server, until
from tests.servers import free_port


async def test_dialled_session_gets_a_reply() -> None:
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port)
        assert await session.ask(frame(b"E", b"hello")) == b"hello"
        peer = session.wire.peer
        assert (peer.address, peer.port, peer.certificate) == ("127.0.0.1", server.port, None)
        session.wire.close()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is False
        assert (await server.session()).lost_with is False


async def test_both_ends_agree_on_the_addresses() -> None:
    """Check that both ends agree on the addresses.

    They name RQP/MCA traces, and cannot be read once the socket is closed.
    """
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port)
        accepted = (await server.session()).wire
        assert session.wire.local == (accepted.peer.address, accepted.peer.port)
        assert accepted.local == ("127.0.0.1", server.port)
        session.wire.abort()
        await until(lambda: session.wire.local is None and accepted.local is None)


async def test_name_is_resolved() -> None:
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port, "localhost")
        assert await session.ask(frame(b"E", b"hello")) == b"hello"
        error = await calls.fails(server.port, "no.such.host.invalid")
        assert str(error).startswith(f"no.such.host.invalid:{server.port}: the name cannot be resolved: ")
        assert "no.such.host" not in str(error).split(": ", 1)[1]


@pytest.mark.parametrize("host", ["x" * 100, "a..b", "a\0b"])
async def test_invalid_name_is_refused(host: str) -> None:
    async with Calls() as calls:
        assert isinstance(await calls.fails(1, host), ConnectionError)


async def test_immediate_input_is_received() -> None:
    """Check that immediate input is received: the session exists before input can arrive."""

    class Talkative(EchoSession):
        def __init__(self, wire: Wire) -> None:
            super().__init__(wire)
            wire.write(b"welcome")

    async with Server(Talkative) as server, Calls() as calls:
        session = await calls.call(server.port)
        await until(lambda: session.heard == b"welcome")


async def test_connections_and_bytes_are_counted() -> None:
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port)
        await session.ask(frame(b"E", b"12345"))
        calls.dialler.tick(0.0)
        assert calls.value("penstock_connections", listener="out") == 1
        assert calls.value("penstock_connections_opened_total", listener="out") == 1
        assert calls.value("penstock_sent_bytes_total", listener="out") == 10
        assert calls.value("penstock_received_bytes_total", listener="out") == 9
        session.wire.close()
        await until(lambda: session.lost_with is not None)
        assert calls.value("penstock_connections", listener="out") == 0


async def test_refusals_and_internal_errors_are_counted() -> None:
    async with Server() as server, Calls(EchoSession) as calls:
        for verb in (b"R", b"X"):
            await calls.connect(server.port)
            (await server.session(len(server.sessions) - 1)).wire.write(frame(verb))
        await until(lambda: calls.value("penstock_local_errors_total"))
        assert calls.value("penstock_refusals_total", reason="not_today") == 1


async def test_closed_port_is_an_error() -> None:
    port = free_port()
    async with Calls() as calls:
        error = await calls.fails(port)
        assert isinstance(error, ConnectionError)
        assert str(error) == f"127.0.0.1:{port}: Connection refused"
        assert calls.sessions == []
        assert calls.value("penstock_connections_opened_total", listener="out") == 0


async def test_unanswered_connect_times_out() -> None:
    with deaf() as port:
        async with Calls(connect_timeout_s=0.2) as calls:
            error = await calls.fails(port)
            assert isinstance(error, TimeoutError)
            assert str(error) == f"127.0.0.1:{port}: no answer within 0.2 s"


def several(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    """Resolve a name to several addresses, which not every machine has."""

    async def look_up(*_: Any) -> list[tuple[int, tcp_connect.Address]]:
        return [(socket.AF_INET, (f"127.0.0.{number}", port)) for number, port in enumerate(ports, start=1)]

    monkeypatch.setattr(tcp_connect, "_resolve", look_up)


async def test_all_addresses_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server(host="127.0.0.3") as server, Calls(connect_timeout_s=1.0) as calls:
        with deaf() as port:
            several(monkeypatch, port, free_port(), server.port)
            session = await calls.call(server.port, "several")
            assert session.wire.peer.address == "127.0.0.3"
            several(monkeypatch, port, free_port())
            error = await calls.fails(7, "several")
        assert str(error) == "several:7: 127.0.0.1: no answer within 1 s; 127.0.0.2: Connection refused"


async def test_reset_is_reported_to_the_session() -> None:
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port)
        session.wire.write(frame(b"E", b"x") + frame(b"A"))
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is True


async def test_peer_that_does_not_read_is_reset_after_the_write_timeout() -> None:
    with mute() as port:
        async with Calls(write_timeout_s=0.3) as calls:
            session = await calls.call(port)
            session.wire.write(bytes(20_000_000))
            assert session.wire.is_blocked()
            await until(lambda: session.lost_with is not None)
            assert calls.value("penstock_refusals_total", reason="write_timeout") == 1


async def test_failing_session_factory_is_reported_to_the_caller() -> None:
    def broken(wire: Wire) -> EchoSession:
        raise RuntimeError("no session today")

    async with Server() as server, Calls(broken) as calls:
        error = await calls.fails(server.port)
        assert (
            str(error)
            == f"127.0.0.1:{server.port}: internal error in the session: RuntimeError('no session today')"
        )
        assert calls.value("penstock_local_errors_total") == 1
        assert (await server.session()).lost_with in (None, True)


async def test_cancelled_connect_leaves_no_connection() -> None:
    with deaf() as port:
        async with Calls(connect_timeout_s=600) as calls:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await calls.connect(port)
            assert not calls.dialler.connections


# --- the drain


class Nothing:
    """An edge that has only connections."""

    readiness = Readiness()

    async def stop_taking(self) -> None: ...

    async def close(self) -> None: ...


async def end(calls: Calls, **settings: float) -> None:
    assert await drain([calls.dialler], Nothing(), DrainSettings(**settings), asyncio.Event())


async def test_drain_closes_dialled_connections() -> None:
    async with Server() as server, Calls() as calls:
        sessions = [await calls.call(server.port) for _ in range(3)]
        await end(calls)
        for session in sessions:
            assert session.calls == ["drain", "lost"]
            assert session.lost_with is False
        error = await calls.fails(server.port)
        assert str(error) == f"127.0.0.1:{server.port}: not dialled, this process is shutting down"


async def test_drain_resets_remaining_connections() -> None:
    class Stubborn(CallingSession):
        def drain(self) -> None:
            self.calls.append("drain")

    async with Server() as server, Calls(Stubborn) as calls:
        session = await calls.call(server.port)
        await end(calls, timeout_s=0.1)
        assert session.calls == ["drain", "lost"]
        assert session.lost_with is True


async def test_drain_fails_pending_attempts() -> None:
    with deaf() as port:
        async with Calls() as calls:
            failing = asyncio.create_task(calls.fails(port))
            await asyncio.sleep(0)  # it is being dialled
            await end(calls)
            assert "shutting down" in str(await failing)


def test_settings_have_defaults_and_reject_unknown_fields() -> None:
    settings = DialSettings()
    assert settings.tls is None
    assert (settings.connect_timeout_s, settings.handshake_timeout_s) == (5, 10)
    assert (settings.write_timeout_s, settings.write_buffer_bytes) == (30, 256 << 10)
