"""Test TLS and mTLS on a listener, with real certificates."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.kit.net.tls import ClientTls, client_context
from tests.kit.authority import Authority
from tests.kit.bare_client import BareClient
from tests.kit.echo_edge import frame
from tests.kit.harness import Server, until


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_carries_small_and_large_frames(authority: Authority, version: ssl.TLSVersion) -> None:
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


async def test_older_tls_version_is_refused(authority: Authority) -> None:
    async with Server(tls=authority.listener(min_version="1.3")) as server:
        context = authority.client()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError, match=r"(?i)alert protocol version"):
            await server.client(ssl=context)
        assert server.refusals("tls_handshake") == 1
        assert server.sessions == []
        client = await server.client(ssl=authority.client())
        client.send(frame(b"E", b"new enough"))
        assert await client.answer() == b"new enough"


async def test_client_certificate_names_the_peer(authority: Authority) -> None:
    async with Server(tls=authority.mutual()) as server:
        for context, name, names in (
            (
                authority.client("agent.example.org", common_name="agent 7"),
                "agent 7",
                {"agent 7", "agent.example.org"},
            ),
            (authority.client("agent.example.org"), "agent.example.org", {"agent.example.org"}),
        ):
            client = await server.client(ssl=context)
            client.send(frame(b"E", b"hello"))
            assert await client.answer() == b"hello"
            peer = server.sessions[-1].wire.peer
            assert (peer.certificate, peer.names) == (name, names)


async def test_intermediate_authority_is_trusted_on_both_sides(tmp_path: Path) -> None:
    """Check that an intermediate authority is trusted on both sides.

    Neither file has the root above it: `client_ca` of the listener, `ca` of the dialler.
    """
    authority = Authority.create(tmp_path, is_intermediate=True)
    async with Server(tls=authority.mutual()) as server:
        client = await server.client(ssl=client_context(ClientTls(**authority.dialler("agent.example.org"))))
        client.send(frame(b"E", b"hello"))
        assert await client.answer() == b"hello"
        assert server.sessions[-1].wire.peer.certificate == "agent.example.org"


async def test_untrusted_client_certificate_is_refused(
    authority: Authority, foreign_authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async with Server(tls=authority.mutual()) as server:
        forged = authority.client()
        foreign_authority.ca.issue_cert("agent.example.org").configure_cert(forged)
        for number, context in enumerate((authority.client(), forged), start=1):
            client = await server.client(ssl=context)  # TLS 1.3: the client is notified only afterwards
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                await client.rest()
            assert server.refusals("tls_handshake") == number
        await until(lambda: not server.listener.connections)
        assert server.sessions == []
        details = [str(vars(r)["detail"]) for r in caplog.records if vars(r).get("reason") == "tls_handshake"]
        assert details == [
            "PEER_DID_NOT_RETURN_A_CERTIFICATE",
            "CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate",
        ]


async def test_unfinished_handshake_times_out(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async with Server(tls=authority.listener(), handshake_timeout_s=0.2, write_timeout_s=0.5) as server:
        client = await server.client()
        client.send(b"\x16\x03\x01")  # the first bytes of a ClientHello
        assert await client.rest() == b""
        assert server.refusals("tls_handshake") == 1
        assert any(vars(record).get("detail") == "not completed within 0.2 s" for record in caplog.records)
        await until(lambda: not server.listener.connections)


async def test_plain_input_at_a_tls_port_is_refused(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        client.send(frame(b"E", b"plain text"))
        await client.ended()
        assert server.refusals("tls_handshake") == 1
        assert server.sessions == []


async def test_port_probe_is_not_a_refusal(authority: Authority) -> None:
    """Check that a port probe is not a refusal: load balancers and kubelets connect and close all day."""
    async with Server(tls=authority.listener()) as server:
        probe = await server.client()
        await until(lambda: server.listener.connections)
        await probe.close()
        await until(lambda: not server.listener.connections)
        assert server.refusals("tls_handshake") == 0


async def test_disconnect_during_the_handshake_is_refused(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        client.send(b"\x16\x03\x01")
        client.writer.write_eof()
        await client.ended()
        assert server.refusals("tls_handshake") == 1


async def test_renewed_certificate_is_reloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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


async def test_certificate_expiry_is_exported(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    soon, later = datetime(2027, 1, 2, tzinfo=UTC), datetime(2028, 1, 2, tzinfo=UTC)
    authority.certify_server(not_after=soon)
    async with Server(tls=authority.listener()) as server:

        def expiry() -> float:
            return server.value("penstock_certificate_not_after_time_seconds", listener=server.listener.name)

        assert expiry() == soon.timestamp()
        authority.certify_server(not_after=later)
        (tmp_path / "key.pem").write_text("half a file")
        server.listener.tick(0.0)
        assert expiry() == soon.timestamp()
        authority.certify_server(not_after=later)
        server.listener.tick(0.0)
        assert expiry() == later.timestamp()


async def test_drain_resets_unfinished_handshakes(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client()
        await until(lambda: server.listener.connections)
        await server.listener.drain(0.0)
        assert await client.ended() == "reset"


async def test_connection_opened_during_the_drain_is_drained(authority: Authority) -> None:
    """Check that a connection opened during the drain is drained.

    The listener drained the others before this one had a session.
    """

    def talk(client: BareClient) -> str:
        client.shake_hands()
        client.socket.sendall(client.seal(b""))
        return client.ended()

    async with Server(tls=authority.listener()) as server:
        # connected, but the loop has not run since
        client = BareClient(authority, server.host, server.port)
        with client.socket:
            server.listener.stop_accepting()
            await server.listener.drain(0.0)
            assert await asyncio.to_thread(talk, client) == "fin"
            session = await server.session()
            assert session.calls[0] == "drain"
