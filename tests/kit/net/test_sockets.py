"""Test socket options and kernel state of connections."""

from __future__ import annotations

import asyncio
import socket

from services.kit.net import sockets
from tests.kit.echo_edge import frame
from tests.kit.harness import PATIENCE_S, Client, Server, until

DELAYED_ACK_S = 0.04  # how long Linux delays an acknowledgement to send it with data
ROUNDS = 25


def test_socket_options_are_set() -> None:
    with socket.socket() as sock:
        sockets.configure(sock)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle = [
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert idle == [60, 10, 8]


async def test_partial_frame_is_acknowledged_at_once() -> None:
    """Check that a partial frame is acknowledged at once.

    tmq.md 3.1: a peer under Nagle's algorithm sends the rest of its request only after that.
    """
    async with Server() as server:
        client = await server.client()
        for _ in range(ROUNDS):  # both sides alternate: from now on the system delays acknowledgements
            client.send(frame(b"E", b"question"))
            assert await client.answer() == b"question"
        seen_s = []
        for _ in range(ROUNDS):
            request = frame(b"E", b"in two halves")
            seen_s.append(await acknowledged_after(client, request[:5]))
            client.send(request[5:])
            assert await client.answer() == b"in two halves"
            if seen_s[-1] < DELAYED_ACK_S / 2:
                return
        raise AssertionError(f"never sooner than after {min(seen_s):.3f} s")


async def acknowledged_after(client: Client, data: bytes) -> float:
    """Send it; return the time until the other side's TCP has acknowledged it, in seconds."""
    loop = asyncio.get_running_loop()
    client.send(data)
    started = loop.time()
    async with asyncio.timeout(PATIENCE_S):
        while sockets.unacked_bytes(client.socket):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    return loop.time() - started


async def test_unsent_counts_octets_without_a_tcp_acknowledgement() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"E", b"x"))
        session = await server.session()
        await client.answer()
        await until(lambda: session.wire.unsent() == 0)
        # A peer that does not read: both kernels take some octets, the rest waits here.
        client.stop_reading()
        client.send(frame(b"F", b"30000000"))
        await until(lambda: session.wire.is_blocked())
        await until(lambda: 1_000_000 < session.wire.unsent() < 30_000_004)
        client.read_on()
        assert len(await client.answer()) == 30_000_000
        await until(lambda: session.wire.unsent() == 0)


async def test_one_socket_accepts_ipv6_and_ipv4() -> None:
    async with Server(host="::") as server:
        for host, seen in (("127.0.0.1", "127.0.0.1"), ("::1", "::1")):
            await server.client(host)
            await until(lambda: server.sessions)
            assert server.sessions.pop().wire.peer.address == seen
