"""Test TLS and mTLS on dialled connections, with real certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
from pathlib import Path
from threading import Thread

import pytest
from pydantic import ValidationError

from services.kit.config.layers import SettingsError
from services.kit.metrics.metrics import Metrics
from services.kit.net.budget import Budget
from services.kit.net.dialler import ClientTls, Dialler, DialSettings
from tests.kit.authority import Authority
from tests.kit.calls import Calls, mute
from tests.kit.echo_edge import frame
from tests.kit.harness import PATIENCE_S, Server, until


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_server_certificate_is_verified_and_names_the_peer(authority: Authority, host: str) -> None:
    async with Server(tls=authority.listener()) as server, Calls(tls=authority.dialler()) as calls:
        session = await calls.call(server.port, host)
        for body in (b"", b"small", bytes(3_000_000)):
            assert await session.ask(frame(b"E", body)) == body
        assert session.wire.peer.certificate == "localhost"
        session.wire.close()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is False


async def test_mutual_tls_names_both_peers(authority: Authority) -> None:
    tls = authority.dialler("edge.example.org", common_name="edge 7")
    async with Server(tls=authority.mutual()) as server, Calls(tls=tls) as calls:
        session = await calls.call(server.port)
        assert await session.ask(frame(b"E", b"hello")) == b"hello"
        assert session.wire.peer.certificate == "localhost"
        assert (await server.session()).wire.peer.certificate == "edge 7"


async def test_server_name_may_differ_from_the_dialled_host(authority: Authority) -> None:
    tls = authority.dialler(server_name="localhost", min_version="1.3")
    async with Server(tls=authority.listener()) as server, Calls(tls=tls) as calls:
        assert (await calls.call(server.port)).wire.peer.certificate == "localhost"


async def test_wrong_server_name_is_refused(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    tls = authority.dialler(server_name="other.example.org")
    async with Server(tls=authority.listener()) as server, Calls(tls=tls) as calls:
        error = await calls.fails(server.port)
        assert isinstance(error, ConnectionError)
        assert str(error) == (
            f"127.0.0.1:{server.port}: tls_handshake: CERTIFICATE_VERIFY_FAILED: "
            "Hostname mismatch, certificate is not valid for 'other.example.org'."
        )
        assert calls.sessions == []
        assert calls.value("penstock_refusals_total", reason="tls_handshake") == 1
        refused = [vars(record) for record in caplog.records if vars(record).get("listener") == "out"]
        assert [event["peer"] for event in refused] == [f"127.0.0.1:{server.port}"]
        await until(lambda: not calls.dialler.connections)


async def test_unknown_authority_is_refused(authority: Authority, foreign_authority: Authority) -> None:
    async with Server(tls=foreign_authority.listener()) as server, Calls(tls=authority.dialler()) as calls:
        error = str(await calls.fails(server.port))
        assert "CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate" in error
        assert server.sessions == []


async def test_missing_client_certificate_is_refused(authority: Authority) -> None:
    """Check that a missing client certificate is refused.

    In TLS 1.3 our handshake ends before the server has checked ours.
    """
    async with Server(tls=authority.mutual()) as server, Calls(tls=authority.dialler()) as calls:
        session = await calls.call(server.port)
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is True
        assert session.heard == b""
        assert server.sessions == []


async def test_silent_server_times_out(authority: Authority) -> None:
    """Check that a silent server times out, without waiting for it to read our close_notify."""
    with mute() as port:
        async with Calls(tls=authority.dialler(), handshake_timeout_s=0.2) as calls:
            error = str(await calls.fails(port))
            assert error == f"127.0.0.1:{port}: tls_handshake: not completed within 0.2 s"


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (b"220 welcome\r\n", "tls_handshake: "),
        (b"", "closed before it was open"),
        (b"\x16\x03\x03\x00", "tls_handshake: the peer disconnected"),
    ],
)
async def test_server_without_tls_is_refused(authority: Authority, says: bytes, error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)

        def answer() -> None:
            sock, _ = server.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(says)
                with contextlib.suppress(OSError):  # it may not read all that we send, or be closed by now
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass

        answering = Thread(target=answer)
        answering.start()
        port = server.getsockname()[1]
        async with Calls(tls=authority.dialler()) as calls:
            assert str(await calls.fails(port)).startswith(f"127.0.0.1:{port}: {error}")
        await asyncio.to_thread(answering.join)


async def test_drain_does_not_wait_for_handshakes(authority: Authority) -> None:
    with mute() as port:
        async with Calls(tls=authority.dialler(), handshake_timeout_s=300) as calls:
            failing = asyncio.create_task(calls.fails(port))
            await until(lambda: calls.dialler.connections)
            calls.dialler.stop_opening()
            await calls.dialler.drain(0.0)
            assert "closed before it was open" in str(await failing)


async def test_cancelled_handshake_leaves_no_connection(authority: Authority) -> None:
    with mute() as port:
        async with Calls(tls=authority.dialler(), handshake_timeout_s=600) as calls:
            waiting = asyncio.create_task(calls.connect(port))
            await until(lambda: calls.dialler.connections)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: not calls.dialler.connections)


async def test_renewed_files_are_reloaded(
    authority: Authority, foreign_authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ca = tmp_path / "ca.pem"
    shutil.copy(foreign_authority.folder / "ca.pem", ca)
    async with Server(tls=authority.listener()) as server, Calls(tls={"ca": ca}) as calls:
        assert "VERIFY_FAILED" in str(await calls.fails(server.port))
        ca.write_text("half a file")
        calls.dialler.tick(0.0)
        assert "VERIFY_FAILED" in str(await calls.fails(server.port))
        shutil.copy(authority.folder / "ca.pem", ca)
        calls.dialler.tick(0.0)
        assert (await calls.call(server.port)).wire.peer.certificate == "localhost"
        actions = [vars(record).get("action") for record in caplog.records]
        assert (actions.count("tls_reload_failed"), actions.count("tls_reloaded")) == (1, 1)


async def test_error_names_unusable_files(tmp_path: Path) -> None:
    settings = DialSettings(tls=ClientTls(ca=tmp_path / "none.pem"))
    with pytest.raises(
        SettingsError, match=r"dial\.tls of out: ca: .*none\.pem cannot be read: No such file"
    ):
        Dialler("out", settings, Budget(1), Metrics("echo"), Budget(1))


def test_certificate_needs_its_key(tmp_path: Path) -> None:
    for half in ({"certificate": tmp_path / "a"}, {"key": tmp_path / "a"}):
        with pytest.raises(ValidationError, match="certificate and key belong together"):
            ClientTls(ca=tmp_path / "ca.pem", **half)
