"""TLS and mTLS on a listener, with real certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from pathlib import Path

import pytest

from services.kit.layers import SettingsError
from services.kit.tls import TlsFilter, TlsSettings, server_context
from tests.kit.authority import Authority
from tests.kit.echo_edge import frame
from tests.kit.harness import PATIENCE_S, Server, exchange, receive, until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody told the server about."""
    return Authority.create(tmp_path_factory.mktemp("stranger"))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_frames_small_and_large(authority: Authority, version: ssl.TLSVersion) -> None:
    async with Server(tls=authority.listener()) as server:
        context = authority.client()
        context.maximum_version = version
        client = await server.client(ssl=context)
        for body in (b"", b"small", os.urandom(3_000_000)):
            client.send(frame(b"E", body))
            assert await client.answer() == body
        session = await server.session()
        assert session.wire.peer.certificate is None
        await until(lambda: session.wire.unsent() == 0)
        await client.close()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is False
        assert session.calls[-2:] == ["eof", "lost"]


async def test_a_client_certificate_names_the_peer(authority: Authority) -> None:
    async with Server(tls=authority.mutual()) as server:
        for context, name in (
            (authority.client("agent.example.org", common_name="agent 7"), "agent 7"),
            (authority.client("agent.example.org"), "agent.example.org"),
        ):
            client = await server.client(ssl=context)
            client.send(frame(b"E", b"hello"))
            assert await client.answer() == b"hello"
            assert server.sessions[-1].wire.peer.certificate == name


async def test_without_a_certificate_or_with_a_strangers_nobody_gets_in(
    authority: Authority, stranger: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async with Server(tls=authority.mutual()) as server:
        forged = authority.client()
        stranger.ca.issue_cert("agent.example.org").configure_cert(forged)
        for number, context in enumerate((authority.client(), forged), start=1):
            client = await server.client(ssl=context)  # TLS 1.3: the client is told only afterwards
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                await client.rest()
            assert server.refusals("tls_handshake") == number
        await until(lambda: not server.listener.connections)
        assert server.sessions == []
        details = [str(vars(r)["detail"]) for r in caplog.records if vars(r).get("reason") == "tls_handshake"]
        assert details == ["PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED"]


async def test_a_handshake_that_never_ends(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async with Server(tls=authority.listener(), handshake_timeout_s=0.2, write_timeout_s=0.5) as server:
        client = await server.client()
        client.send(b"\x16\x03\x01")  # the first bytes of a ClientHello
        assert await client.rest() == b""
        assert server.refusals("tls_handshake") == 1
        assert any(vars(record).get("detail") == "not finished after 0.2 s" for record in caplog.records)
        await until(lambda: not server.listener.connections)


async def test_something_else_than_tls(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        client.send(frame(b"E", b"plain text"))
        await client.ended()
        assert server.refusals("tls_handshake") == 1
        assert server.sessions == []


async def test_a_port_probe_is_no_refusal(authority: Authority) -> None:
    """Load balancers and kubelets connect and close, all day long."""
    async with Server(tls=authority.listener()) as server:
        probe = await server.client()
        await until(lambda: server.listener.connections)
        await probe.close()
        await until(lambda: not server.listener.connections)
        assert server.refusals("tls_handshake") == 0


async def test_a_peer_that_leaves_in_the_middle_of_the_handshake(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        client.send(b"\x16\x03\x01")
        client.writer.write_eof()
        await client.ended()
        assert server.refusals("tls_handshake") == 1


async def test_after_the_peers_goodbye_the_session_may_still_answer(authority: Authority) -> None:
    """Half-close, as on a plain connection; asyncio's own TLS cannot do this."""

    def talk(host: str, port: int) -> tuple[bytes, bytes]:
        with (
            socket.create_connection((host, port), PATIENCE_S) as sock,
            authority.client().wrap_socket(sock, server_hostname="localhost") as tls,
        ):
            early = exchange(tls, frame(b"E", b"first"))
            tls.sendall(frame(b"W", b"0.1"))
            socket.socket.shutdown(tls, socket.SHUT_WR)  # below TLS: a FIN, as most clients say goodbye
            return early, receive(tls)

    async with Server(tls=authority.listener()) as server:
        early, late = await asyncio.to_thread(talk, server.host, server.port)
        assert (early, late) == (b"first", b"done")
        session = await server.session()
        await until(lambda: session.lost_with is False)


async def test_a_slow_reader_is_held_to_the_same_bound(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client(ssl=authority.client())
        client.send(frame(b"E", b"."))
        await client.answer()
        client.stop_reading()
        client.send(frame(b"F", b"65536") * 800)
        session = await server.session()
        await until(session.wire.is_blocked)
        assert session.wire.unsent() < 12_000_000  # of 52 MB; most of it is the kernel's
        client.read_on()
        for _ in range(800):
            assert len(await client.answer()) == 65536


class BareClient:
    """TLS by hand on a blocking socket, so that anything can be sent beside it."""

    def __init__(self, authority: Authority, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), PATIENCE_S)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = authority.client().wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def shake_hands(self) -> None:
        """All but the last flight, which `seal` gives."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.socket.sendall(self._outgoing.read())
                self._incoming.write(self.socket.recv(65536))
            else:
                return

    def seal(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def ended(self) -> str:
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            return "reset"
        return "fin"


async def test_what_is_no_tls_record_any_more_ends_in_a_reset(authority: Authority) -> None:
    def talk(host: str, port: int) -> str:
        client = BareClient(authority, host, port)
        with client.socket:
            client.shake_hands()
            client.socket.sendall(client.seal(frame(b"E", b"good")) + bytes(100))
            return client.ended()

    async with Server(tls=authority.listener()) as server:
        assert await asyncio.to_thread(talk, server.host, server.port) == "reset"
        session = await server.session()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is True
        assert session.calls == ["received", "lost"]  # what was whole before it was still delivered
        assert server.refusals("tls_record") == 1


async def test_after_our_goodbye_nothing_that_comes_matters(authority: Authority) -> None:
    def talk(host: str, port: int) -> str:
        client = BareClient(authority, host, port)
        with client.socket:
            client.shake_hands()
            client.socket.sendall(client.seal(frame(b"Q")))
            ended = client.ended()
            for _ in range(3):
                client.socket.sendall(client.seal(frame(b"E", b"late")) + bytes(100))
            return ended

    async with Server(tls=authority.listener()) as server:
        assert await asyncio.to_thread(talk, server.host, server.port) == "fin"
        session = await server.session()
        await until(lambda: session.lost_with is not None)
        assert session.calls == ["received", "lost"]
        assert server.refusals("tls_record") == 0
        assert server.value("penstock_local_errors_total") == 0


async def test_a_renewed_certificate_is_taken_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority.create(tmp_path)

    async def serial(server: Server) -> str:
        client = await server.client(ssl=authority.client())
        return str(client.writer.get_extra_info("peercert")["serialNumber"])

    async with Server(tls=authority.listener()) as server:
        before = await serial(server)
        server.listener.tick(0.0)
        assert await serial(server) == before
        (tmp_path / "key.pem").write_text("half a file")
        server.listener.tick(0.0)
        assert await serial(server) == before
        authority.certify_server()
        server.listener.tick(0.0)
        assert await serial(server) != before
        actions = [vars(record).get("action") for record in caplog.records]
        assert actions.count("tls_reload_failed") == 1
        assert actions.count("tls_reloaded") == 1


async def test_a_drain_does_not_wait_for_handshakes(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        await until(lambda: server.listener.connections)
        await server.listener.drain(0.0)
        assert await client.ended() == "reset"


def test_files_that_are_not_usable_are_named(tmp_path: Path) -> None:
    settings = TlsSettings(certificate=tmp_path / "none.pem", key=tmp_path / "none.key")
    with pytest.raises(SettingsError, match=r"TLS files .*none\.pem, .*none\.key: No such file"):
        server_context(settings)


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_the_filter_does_not_care_how_the_bytes_are_cut(authority: Authority, step: int) -> None:
    server = TlsFilter(server_context(TlsSettings(**authority.listener())))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = authority.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    plain = b""

    def carry() -> None:
        nonlocal plain
        data = outgoing.read()
        for start in range(0, len(data), step):
            plain += server.decrypt(data[start : start + step])
        incoming.write(server.output())

    while not server.established:
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        carry()
    client.write(b"hello ")
    client.write(b"world")
    with pytest.raises(ssl.SSLWantReadError):
        client.unwrap()
    carry()
    assert plain == b"hello world"
    assert server.ended
    assert server.fault is None
    incoming.write(server.encrypt(b"and back") + server.goodbye())
    assert client.read() == b"and back"


def test_no_mutation_of_a_handshake_is_more_than_a_fault(authority: Authority) -> None:
    """Whatever comes instead of a ClientHello: a fault to refuse, never an exception of ours."""
    context = server_context(TlsSettings(**authority.listener()))
    outgoing = ssl.MemoryBIO()
    client = authority.client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    faults = 0
    for position in range(len(hello)):
        for value in (0, 0x7F, 0xFF, hello[position] ^ 1):
            server = TlsFilter(context)
            assert server.decrypt(hello[:position] + bytes((value,)) + hello[position + 1 :]) == b""
            assert not server.established
            faults += server.fault is not None
    assert faults > 100
