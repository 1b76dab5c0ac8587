"""Read streams whole despite faults of connection, server and shard, at any place of the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.store.catalogue.reading import BEGINNING, StreamReader
from services.store.model.errors import StoreUnavailable
from tests.kit.authority import Authority
from tests.proxy import Proxy
from tests.redis_stream.reads import InThread, everything, ids
from tests.redis_stream.streams import KEY, add, numbered
from tests.servers import PROGRAMS, Server, eventually, free_port
from tests.store.desk import until
from tests.topologies import Cluster, Replicated


def test_a_connection_that_is_cut_in_the_middle_of_a_page(server: Server) -> None:
    expected = add(server, numbered(600))

    async def cut() -> list[str]:
        async with Proxy(server.port) as proxy:
            reading = InThread(proxy.url)
            await until(lambda: len(reading.seen) >= 10)
            proxy.cut()
            return await asyncio.to_thread(reading.finish)

    assert asyncio.run(cut()) == expected


def test_a_reply_of_which_only_a_part_comes(server: Server) -> None:
    """Check connections cut after any number of octets: each entry is read once."""
    expected = add(server, [(f"{at}-0", 5000) for at in range(1, 200)])

    async def cut_after(octets: int) -> list[str]:
        left, lines = [octets], []

        async def passes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bounded: bool) -> None:
            try:
                while data := await reader.read(1 << 14):
                    if bounded and left[0] < len(data):
                        left[0] = 1 << 60
                        break
                    left[0] -= len(data) if bounded else 0
                    writer.write(data)
                    await writer.drain()
            except OSError:
                pass
            writer.transport.abort()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            lines.append(asyncio.current_task())
            upstream = await asyncio.open_connection("127.0.0.1", server.port)
            await asyncio.gather(passes(reader, upstream[1], False), passes(upstream[0], writer, True))

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            found = await asyncio.to_thread(everything, f"redis://127.0.0.1:{port}")
            await asyncio.gather(*lines)
            return found

    for octets in (3, 1000, 100_000, 300_000, 700_000):
        assert asyncio.run(cut_after(octets)) == expected


def test_a_server_that_is_killed_and_starts_again(own_server: Server) -> None:
    expected = add(own_server, numbered(600))
    reading = InThread(own_server.url)
    eventually(lambda: len(reading.seen) >= 10)
    own_server.kill9()
    reading.go_on.set()
    own_server.restart()
    assert reading.finish() == expected


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_a_store_that_stays_away_is_told_of(own_server: Server, how: str) -> None:
    add(own_server, numbered(600))
    reading = InThread(own_server.url, reply_timeout_s=0.5, patience_s=0.5)
    eventually(lambda: len(reading.seen) >= 10)
    if how == "gone":
        own_server.kill9()
    else:
        own_server.stop()
    with pytest.raises(StoreUnavailable, match="the store cannot be used now"):
        reading.finish()


def test_a_wrong_password_is_said_at_once(own_server: Server) -> None:
    own_server.call("CONFIG", "SET", "requirepass", "secret")
    with (
        StreamReader(own_server.url, patience_s=1e6) as reading,
        pytest.raises(StoreUnavailable, match=r"[Aa]uth"),
    ):
        reading.now_ms()
    url = own_server.url.replace("//", "//:wrong@")
    with StreamReader(url, patience_s=1e6) as reading, pytest.raises(StoreUnavailable, match="password"):
        reading.now_ms()


def test_a_right_that_is_missing_is_said_at_once(own_server: Server) -> None:
    add(own_server, numbered(3))
    own_server.call("ACL", "SETUSER", "r", "on", ">p", "~*", "+@connection", "+xrange")
    url = own_server.url.replace("//", "//r:p@")
    assert len(everything(url, patience_s=1e6)) == 3
    with StreamReader(url, patience_s=1e6) as reading, pytest.raises(StoreUnavailable, match="xinfo"):
        reading.state(KEY)
    own_server.call("ACL", "SETUSER", "r", "-xrange")
    with pytest.raises(StoreUnavailable, match="xrange"):
        everything(url, patience_s=1e6)


# places of a store


def test_a_cluster_has_keys_on_several_shards_and_a_slot_that_moves(tmp_path: Path) -> None:
    cluster = Cluster(next(iter(PROGRAMS)), tmp_path)
    try:
        cluster.start()
        places = [(f"s{at}", cluster.holder(f"s{at}")) for at in range(12)]
        assert {node.port for _, node in places} == {node.port for node in cluster.nodes}
        for key, node in places:
            add(node, numbered(40), key)
        with StreamReader(cluster.url) as reading:
            for key, _ in places:
                assert len(ids(reading.pages(key, BEGINNING, "999-0", 9))) == 40
        key, node = places[0]
        expected = add(node, numbered(600, 41), key)
        under_way = InThread(cluster.url, key)
        eventually(lambda: len(under_way.seen) >= 10)
        cluster.move(key, next(other for other in cluster.nodes if other is not node))
        assert under_way.finish()[40:] == expected
    finally:
        cluster.end()


def test_a_failover_under_sentinels(tmp_path: Path) -> None:
    topology = Replicated(next(iter(PROGRAMS)), tmp_path)
    try:
        topology.start()
        old = topology.primary()
        expected = add(old, numbered(600))
        eventually(lambda: all(node.call("XLEN", KEY) == 600 for node in topology.nodes))
        reading = InThread(topology.url, patience_s=60)
        eventually(lambda: len(reading.seen) >= 10)
        old.kill9()
        reading.go_on.set()
        assert reading.finish() == expected
    finally:
        topology.end()


@pytest.mark.parametrize("is_intermediate", [False, True], ids=["root", "intermediate alone"])
def test_tls_with_an_authority_of_ones_own(tmp_path: Path, is_intermediate: bool) -> None:
    Authority.create(tmp_path, is_intermediate=is_intermediate)
    port = free_port()
    files = {"tls-cert-file": "chain.pem", "tls-key-file": "key.pem", "tls-ca-cert-file": "ca.pem"}
    options = {name: str(tmp_path / file) for name, file in files.items()}
    options |= {"tls-port": str(port), "tls-auth-clients": "no"}
    server = Server("redis", tmp_path / "data", options)
    try:
        expected = add(server.start(), numbered(300))
        url = f"rediss://localhost:{port}"
        assert everything(f"{url}?ssl_ca_certs={tmp_path / 'ca.pem'}") == expected
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            everything(url, patience_s=0.1)
    finally:
        server.end()


def test_a_socket_and_a_database_of_a_number(own_server: Server) -> None:
    with own_server.client() as client:
        client.call("SELECT", 3)
        client.call("XADD", KEY, "7-0", "a", "b")
    assert everything(own_server.url) == []
    assert everything(f"{own_server.url}/3") == ["7-0"]
    assert everything(f"unix://{own_server.directory / 'store.sock'}?db=3") == ["7-0"]
