"""Test TCP connections to addresses: established, refused and cancelled."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
from pathlib import Path

import pytest

from services.kit.dns.socket_connect import connect
from services.kit.dns.tcp_connect import open_tcp
from tests.kit.calls import deaf
from tests.kit.harness import PATIENCE_S, until
from tests.servers import free_port
from tests.silent import NameServer, on_silent_machine

LOOPBACKS = [
    pytest.param(socket.AF_INET, "127.0.0.1", id="IPv4"),
    pytest.param(socket.AF_INET6, "::1", id="IPv6"),
]


def tcp(family: int = socket.AF_INET) -> socket.socket:
    return socket.socket(family, socket.SOCK_STREAM)


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(("family", "host"), LOOPBACKS)
async def test_connection_carries_octets_both_ways(family: int, host: str) -> None:
    with socket.create_server((host, 0), family=family) as server, tcp(family) as sock:
        await connect(sock, server.getsockname())
        assert sock.gettimeout() == 0
        there, _ = server.accept()
        with there:
            sock.send(b"ping")
            assert there.recv(4) == b"ping"
            there.send(b"pong")
            assert await asyncio.get_running_loop().sock_recv(sock, 4) == b"pong"


async def test_connect_keeps_the_bound_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, tcp() as sock:
        sock.bind(("127.0.0.5", 0))
        await connect(sock, server.getsockname())
        there, place = server.accept()
        there.close()
        assert place == sock.getsockname()
        assert place[0] == "127.0.0.5"


@pytest.mark.parametrize(("family", "host"), LOOPBACKS)
async def test_closed_port_is_an_error(family: int, host: str) -> None:
    with tcp(family) as sock:
        with pytest.raises(ConnectionRefusedError) as caught:
            await connect(sock, (host, free_port()))
        assert caught.value.errno == errno.ECONNREFUSED
        assert caught.value.strerror == "Connection refused"


async def test_late_refusal_is_reported() -> None:
    """Check that a late refusal is reported: the kernel retries after a second, when the port is closed."""
    with tcp() as sock:
        with deaf() as port:
            connecting = asyncio.create_task(connect(sock, ("127.0.0.1", port)))
            await asyncio.sleep(0)
            assert not connecting.done()
        with pytest.raises(ConnectionRefusedError):
            async with asyncio.timeout(PATIENCE_S):
                await connecting


async def test_connection_to_itself_is_refused() -> None:
    """Check that a connection of a socket to itself is refused.

    TCP allows that on a port without a listener.
    """
    with tcp() as sock:
        sock.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError, match="Connection refused"):
            await connect(sock, sock.getsockname())


@pytest.mark.parametrize("host", ["localhost", "127.1", "", "::1", "127.0.0.1%lo"])
async def test_connect_does_not_resolve_names(host: str) -> None:
    with tcp() as sock, pytest.raises(OSError, match="illegal IP address"):
        await connect(sock, (host, 7))


def test_link_local_address_needs_a_valid_scope(tmp_path: Path) -> None:
    """Check that an IPv6 link-local address without a valid scope is refused."""

    async def scenario(_: NameServer) -> None:
        for command in (
            "link add scoped type veth peer name other",
            "link set scoped up",
            "link set other up",
            "address add fe80::7/64 dev scoped nodad",
        ):
            subprocess.run(["ip", *command.split()], check=True)  # noqa: ASYNC221
        place = ("fe80::7", 7171, 0, socket.if_nametoindex("scoped"))
        with socket.create_server(place, family=socket.AF_INET6):
            with tcp(socket.AF_INET6) as sock:
                await connect(sock, place)
            with tcp(socket.AF_INET6) as sock, pytest.raises(OSError, match="Invalid argument"):
                await connect(sock, place[:2])
            sock, address = await open_tcp("fe80::7%scoped", 7171, PATIENCE_S)
            with sock:
                assert (address, sock.getpeername()) == ("fe80::7", place)

    on_silent_machine(scenario, tmp_path)


async def test_cancelled_connect_leaves_no_connection() -> None:
    """Check that a cancelled connect leaves no file and no watcher: the descriptor may be reused at once."""
    with deaf() as port:
        before = open_files()
        for _ in range(50):
            with tcp() as sock, pytest.raises(TimeoutError):
                async with asyncio.timeout(0.005):
                    await connect(sock, ("127.0.0.1", port))
            assert sock.fileno() == -1
            assert open_files() == before
        with socket.create_server(("127.0.0.1", 0)) as server, tcp() as sock:
            async with asyncio.timeout(PATIENCE_S):
                await connect(sock, server.getsockname())


async def test_cancellation_at_success_closes_the_socket() -> None:
    """Check that a connect cancelled at its success raises and closes the socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = open_files()
        for turns in range(4):
            sock = tcp()
            connecting = asyncio.create_task(connect(sock, server.getsockname()))
            for _ in range(turns):
                await asyncio.sleep(0)
            connecting.cancel()
            await asyncio.wait((connecting,))
            sock.close()
            await until(lambda: open_files() == before)


def test_unreachable_network_is_reported(tmp_path: Path) -> None:
    async def scenario(_: NameServer) -> None:
        with tcp() as sock:
            with pytest.raises(OSError) as caught:
                await connect(sock, ("192.0.2.1", 7))
            assert caught.value.errno == errno.ENETUNREACH

    on_silent_machine(scenario, tmp_path)
