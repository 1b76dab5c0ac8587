"""Test TLS after the handshake: half-closing, slow readers, bad records, and missing close_notify."""

from __future__ import annotations

import asyncio
import socket

from services.kit.net.sockets import unacked_bytes
from tests.kit.authority import Authority
from tests.kit.bare_client import BareClient
from tests.kit.echo_edge import LENGTH, frame
from tests.kit.harness import PATIENCE_S, Server, exchange, receive, until


async def test_session_may_reply_after_close_notify(authority: Authority) -> None:
    """Check that a session may reply after close_notify: asyncio's own TLS cannot half-close."""

    def talk(host: str, port: int) -> tuple[bytes, bytes]:
        with (
            socket.create_connection((host, port), PATIENCE_S) as sock,
            authority.client().wrap_socket(sock, server_hostname="localhost") as tls,
        ):
            early = exchange(tls, frame(b"E", b"first"))
            tls.sendall(frame(b"W", b"0.1"))
            socket.socket.shutdown(tls, socket.SHUT_WR)  # below TLS: a FIN, by which most clients close
            return early, receive(tls)

    async with Server(tls=authority.listener()) as server:
        early, late = await asyncio.to_thread(talk, server.host, server.port)
        assert (early, late) == (b"first", b"done")
        session = await server.session()
        await until(lambda: session.lost_with is False)


async def test_slow_tls_reader_has_the_same_limit(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        client = await server.client(ssl=authority.client())
        client.send(frame(b"E", b"."))
        await client.answer()
        client.stop_reading()
        client.send(frame(b"F", b"65536") * 800)
        session = await server.session()
        await until(session.wire.is_blocked)
        assert session.wire.unsent() < 12_000_000  # of 52 MB; most of it is in the kernel
        client.read_on()
        for _ in range(800):
            assert len(await client.answer()) == 65536


async def test_invalid_tls_record_resets_the_connection(authority: Authority) -> None:
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
        assert session.calls == ["received", "lost"]  # messages complete before it were still delivered
        assert server.refusals("tls_record") == 1


async def test_input_after_our_close_notify_is_ignored(authority: Authority) -> None:
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


RECORD = 16 << 10  # bytes of plaintext in one TLS record at most


async def test_client_that_never_reads_loses_no_input(authority: Authority) -> None:
    """Check that a client that never reads loses no input.

    Session tickets from us would make its kernel reset the connection, with bytes still to send.
    """
    async with Server(tls=authority.listener()) as server:
        client = await asyncio.to_thread(shaken, authority, server)
        with client.socket:
            session = await server.session()
            await until(lambda: server.refusals("not_today") == 1)  # a request without an answer
            session.wire.pause()
            size = await asyncio.to_thread(fill, client)
            assert unacked_bytes(client.socket) > 0, "all of it has arrived: this tests nothing"
        session.wire.resume()
        await until(lambda: session.buffered == size or session.lost_with is not None)
        assert session.buffered == size
        await until(lambda: "eof" in session.calls)
        assert session.lost_with is None


def shaken(authority: Authority, server: Server) -> BareClient:
    client = BareClient(authority, server.host, server.port)
    client.shake_hands()
    client.socket.sendall(client.seal(frame(b"R")))
    return client


def fill(client: BareClient) -> int:
    """Send the beginning of a long frame until all buffers are full; return how much of it is in whole records."""
    client.socket.settimeout(0.2)
    head = LENGTH.pack(1 << 30)
    plain, size = head + bytes(RECORD - len(head)), 0
    try:
        while True:
            client.socket.sendall(client.seal(plain))
            size += RECORD
            plain = bytes(RECORD)
    except TimeoutError:
        return size
