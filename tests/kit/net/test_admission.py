"""Test admission of connections: limits, refusals and the rate of log lines."""

from __future__ import annotations

import asyncio
import pickle
import resource
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from services.kit.config.layers import SettingsError
from services.kit.net import sockets
from services.kit.net.acceptor import EXHAUSTED_PAUSE_S, Acceptor, AddressInUse, open_bound, open_listening
from services.kit.net.connection_limits import ConnectionLimits, plain_address
from services.kit.net.listener import ListenerSettings
from services.kit.net.refusals import Refusal, Throttle
from tests.kit.authority import Authority
from tests.kit.echo_edge import frame
from tests.kit.harness import Server, until

SETTING = ("edges", "echo", "listeners", "echo", "port")


def refusal_records(caplog: pytest.LogCaptureFixture, reason: str) -> list[dict[str, object]]:
    return [vars(record) for record in caplog.records if vars(record).get("reason") == reason]


def actions(caplog: pytest.LogCaptureFixture, action: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if vars(record).get("action") == action]


async def test_listener_limit_is_enforced(caplog: pytest.LogCaptureFixture) -> None:
    async with Server(max_connections=2) as server:
        first, second = await server.client(), await server.client()
        await server.session(1)
        third = await server.client()
        assert await third.ended() in ("fin", "reset")
        assert server.refusals("connection_limit") == 1
        (record,) = refusal_records(caplog, "connection_limit")
        assert (record["action"], record["listener"], record["edge"]) == ("refused", "here", "echo")
        await first.close()
        await until(lambda: len(server.listener.connections) == 1)
        fourth = await server.client()
        for client in (second, fourth):
            client.send(frame(b"E", b"in"))
            assert await client.answer() == b"in"


async def test_limit_per_address_is_enforced() -> None:
    async with Server(host="::", max_connections_per_address=1) as server:
        first = await server.client("127.0.0.1")
        await server.session()
        assert await (await server.client("127.0.0.1")).ended() in ("fin", "reset")
        assert server.refusals("address_limit") == 1
        other = await server.client("::1")
        other.send(frame(b"E", b"another address"))
        assert await other.answer() == b"another address"
        await first.close()
        await until(lambda: len(server.listener.connections) == 1)
        again = await server.client("127.0.0.1")
        again.send(frame(b"E", b"room again"))
        assert await again.answer() == b"room again"


async def test_addresses_outside_the_allow_list_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with Server(host="::", allow=["127.0.0.0/8"]) as server:
        inside = await server.client("127.0.0.1")
        inside.send(frame(b"E", b"in"))
        assert await inside.answer() == b"in"
        assert await (await server.client("::1")).ended() in ("fin", "reset")
        assert server.refusals("not_allowed") == 1
        (record,) = refusal_records(caplog, "not_allowed")
        assert str(record["peer"]).startswith("[::1]:")


async def test_flood_is_counted_completely_and_logged_partly(caplog: pytest.LogCaptureFixture) -> None:
    async with Server(max_connections=1) as server:
        await server.client()
        await server.session()
        loop = asyncio.get_running_loop()
        for _ in range(300):
            with socket.socket() as client:
                client.setblocking(False)
                await loop.sock_connect(client, (server.host, server.port))
        await until(lambda: server.refusals("connection_limit") == 300)
        assert len(refusal_records(caplog, "connection_limit")) == 10
        server.listener.tick(loop.time() + 60)
        assert refusal_records(caplog, "connection_limit")[-1]["count"] == 290
        assert server.value("penstock_connections", listener="here") == 1


SETTING = ("edges", "echo", "listeners", "echo", "port")


@pytest.fixture
def descriptor_limits() -> Iterator[tuple[int, int]]:
    """Return the soft and hard limit of descriptors, and restore them afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield limits
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_clients_wait_while_descriptors_are_exhausted(
    descriptor_limits: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with Server() as server:
        clients = [socket.socket() for _ in range(4)]
        with socket.socket() as probe:  # room for two more
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno() + 2, descriptor_limits[1]))
        loop = asyncio.get_running_loop()
        for client in clients:
            client.setblocking(False)
            await loop.sock_connect(client, (server.host, server.port))
        await until(lambda: server.refusals("no_descriptors") >= 2)
        assert len(server.sessions) < 4
        processor_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        await asyncio.sleep(2 * EXHAUSTED_PAUSE_S)  # two of its pauses: it must not spin meanwhile
        assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - processor_s < EXHAUSTED_PAUSE_S
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptor_limits)
        await server.session(3)
        await until(lambda: actions(caplog, "accept_resumed"))
        assert len(actions(caplog, "accept_failed")) == 1
        assert actions(caplog, "accept_resumed")[0]["attempts"] == server.refusals("no_descriptors")
        for client in clients:
            client.close()


@pytest.mark.parametrize("rests", [False, True])
async def test_close_while_descriptors_are_exhausted_stops_accepting(
    descriptor_limits: tuple[int, int], caplog: pytest.LogCaptureFixture, rests: bool
) -> None:
    """Check that a close while descriptors are exhausted stops accepting.

    Waiting peers could not be accepted, and a closed socket is not polled for them.
    """
    loop, errors = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    acceptor = Acceptor(open_listening("127.0.0.1", 0, SETTING), lambda sock, *_: sock.close())
    with socket.socket() as client, socket.socket() as probe:
        resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno() + 1, descriptor_limits[1]))
        client.connect(acceptor.address)
        if rests:
            await until(lambda: any(vars(r).get("action") == "accept_failed" for r in caplog.records))
        acceptor.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptor_limits)
        over = asyncio.Event()
        loop.call_later(1.5 * EXHAUSTED_PAUSE_S, over.set)
        await over.wait()
    assert len(actions(caplog, "accept_failed")) == 1
    assert errors == []


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 6161\r\n", 1),
        (b"PROXY TCP6 2001:db8::7 ::1 40000 6161\r\n", 1),
        (b"PROXY UNKNOWN\r\n", 1),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12), 2),
    ],
)
async def test_proxy_header_is_refused_with_its_own_reason(
    header: bytes, version: int, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    for tls in ({}, {"tls": authority.listener()}):
        async with Server(**tls) as server:
            client = await server.client()
            client.send(header + frame(b"E", b"behind it"))
            await client.ended()
            assert server.refusals("proxy_header") == 1
            assert [session.buffered for session in server.sessions] == [0] * len(server.sessions)
    for record in refusal_records(caplog, "proxy_header"):
        assert f"a PROXY protocol header (version {version})" in str(record["detail"])


async def test_close_accepts_waiting_connections() -> None:
    async with Server() as server:
        client = await server.client()
        server.listener.stop_accepting()
        client.send(frame(b"E", b"just in time"))
        assert await client.answer() == b"just in time"
        with pytest.raises(ConnectionRefusedError):
            await server.client()


async def test_address_in_use_is_a_one_line_error() -> None:
    async with Server() as server:
        with pytest.raises(SettingsError, match=rf"cannot listen on 127.0.0.1 port {server.port}: Address"):
            open_listening("127.0.0.1", server.port, SETTING)


def test_mapped_ipv4_addresses_count_as_ipv4() -> None:
    assert plain_address("::ffff:10.1.2.3") == "10.1.2.3"
    assert plain_address("fe80::1%eth0") == "fe80::1"
    assert plain_address("2001:db8::ffff:1") == "2001:db8::ffff:1"


def test_ipv6_addresses_count_by_64() -> None:
    limits = ConnectionLimits((), max_connections=10, max_per_address=1)
    assert limits.admit("2001:db8::1") is None
    assert limits.admit("2001:db8::2") is Refusal.ADDRESS_LIMIT
    assert limits.admit("2001:db8:0:1::1") is None
    limits.release("2001:db8::1")
    assert limits.admit("2001:db8::2") is None
    assert limits.count == 2


def test_released_addresses_are_forgotten() -> None:
    """Check that released addresses are forgotten; otherwise memory would grow with each new address."""
    limits = ConnectionLimits((), max_connections=10, max_per_address=1)
    for number in range(1_000):
        address = f"10.0.{number >> 8}.{number & 255}"
        assert limits.admit(address) is None
        assert limits.admit(address) is Refusal.ADDRESS_LIMIT
        limits.release(address)
    assert len(pickle.dumps(limits)) < 1_000
    assert limits.count == 0


def test_throttle_reports_suppressed_lines() -> None:
    throttle = Throttle(burst=2, window_s=10)
    assert [throttle.admit("a", 0.0) for _ in range(5)] == [True, True, False, False, False]
    assert throttle.admit("b", 0.0)
    assert throttle.expired(9.0) == []
    assert throttle.expired(10.0) == [("a", 3)]
    assert throttle.admit("a", 10.0)


def test_the_descriptor_limit_is_raised_to_the_hard_one(descriptor_limits: tuple[int, int]) -> None:
    soft, hard = descriptor_limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    assert sockets.raise_descriptor_limit() == hard
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_listener_binds_loopback_by_default() -> None:
    settings = ListenerSettings(port=1)
    assert (settings.host, settings.allow, settings.tls) == ("127.0.0.1", (), None)


def test_only_one_socket_can_listen_on_an_address() -> None:
    """Check that only one socket can listen on an address.

    Two sockets with SO_REUSEADDR may be bound to one port as long as neither listens.
    """
    with open_bound("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with open_bound("127.0.0.1", port):
            first.listen()
            with pytest.raises(
                AddressInUse, match=rf"port {port}: Address already in use; .* change edges.echo"
            ):
                open_listening("127.0.0.1", port, SETTING)
