"""Bounds: sizes, slow peers, many connections (tmq.md 7)."""

from __future__ import annotations

import asyncio
import gc
import resource
from pathlib import Path

from protos import tmq
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge, until

MIB = 1 << 20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def test_a_body_over_the_limit_is_consumed_and_failed(edge: LiveEdge, client: Client) -> None:
    """7.1"""
    mqid = await client.queue(b"q")
    assert not await client.enq(mqid, bytes(MIB + 1))
    assert not await client.enq(mqid, bytes(5 * MIB))
    assert await client.enq(mqid, bytes(MIB))
    assert await client.select(mqid) == 1
    assert edge.refusals()["message_too_large"] == 2


async def test_a_body_over_16_mib_is_failed_and_closed(edge: LiveEdge, client: Client) -> None:
    """7.1: without reading it"""
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"")[:-4] + (17 * MIB).to_bytes(4, "big"))
    assert await client.read(1) == b"\0"
    assert await client.ended() == "fin"


async def test_a_long_name_is_consumed_and_failed(edge: LiveEdge, client: Client) -> None:
    """2.1"""
    assert not await client.create(b"")
    assert edge.refusals()["bad_name"] == 1
    assert not await client.create(bytes(256))
    assert await client.open(bytes(60_000)) is None
    assert await client.create(bytes(range(1, 256)))
    await client.send(b"\0" + (70_000).to_bytes(4, "big"))
    assert await client.read(1) == b"\1"
    assert await client.ended() == "fin"
    assert edge.refusals()["name_too_long"] == 3


async def test_a_peer_that_does_not_read_holds_little_memory_and_is_closed(make_edge: MakeEdge) -> None:
    """7.3"""
    edge = await make_edge(
        listeners={"document": {"port": 0, "write_timeout_s": 1.0, "write_buffer_bytes": 64 << 10}}
    )
    filler, greedy = await edge.client(), await edge.client(receive_buffer=4096)
    mqid = await filler.queue(b"q")
    for _ in range(100):
        await filler.put(mqid, bytes(MIB))
    await greedy.queue(b"q")
    gc.collect()
    before = resident_bytes()
    await greedy.send(tmq.encode_dnq(mqid) * 100)
    most = 0
    while edge.refusals()["write_timeout"] == 0:
        most = max(most, resident_bytes() - before)
        await asyncio.sleep(0.01)
    assert most < 40 * MIB, f"{most / MIB:.0f} MiB were held for one peer that reads nothing"
    greedy.reset()
    await until(lambda: all_back(edge, 100))


async def all_back(edge: LiveEdge, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)


async def test_a_request_that_is_never_finished(make_edge: MakeEdge) -> None:
    """7.3: also when an octet comes now and then; others are unharmed"""
    edge = await make_edge(request_timeout_s=0.4)
    slow, other = await edge.client(), await edge.client()
    mqid = await other.queue(b"q")
    request = tmq.encode_enq(mqid, bytes(1000))
    ended = asyncio.ensure_future(slow.ended())
    for at in range(len(request)):
        if ended.done():
            break
        try:
            await slow.send(request[at : at + 1])
        except (BrokenPipeError, ConnectionResetError):
            break
        await asyncio.sleep(0.01)
        assert await other.enq(mqid, b"unharmed")
    assert await ended in ("fin", "reset")
    assert edge.refusals()["request_timeout"] == 1


async def test_idle_between_requests_is_allowed(make_edge: MakeEdge) -> None:
    """7.3: longer than every timeout there is"""
    edge = await make_edge(request_timeout_s=0.2, eof_grace_s=0.1)
    client = await edge.client()
    mqid = await client.queue(b"q")
    assert await client.is_silent(1.0)
    assert await client.enq(mqid, b"still here")


async def test_each_refusal_is_counted_and_logged_once_a_connection(edge: LiveEdge, client: Client) -> None:
    """7.4"""
    nobody = tmq.mqid_of(b"nobody")
    for _ in range(5):
        assert not await client.enq(nobody, b"x")
    assert edge.refusals()["mqid_not_open"] == 5
    assert len(edge.log.events("refused", reason="mqid_not_open")) == 1
    other = await edge.client()
    assert not await other.enq(nobody, b"x")
    assert len(edge.log.events("refused", reason="mqid_not_open")) == 2


async def test_an_unknown_code_closes_and_names_the_octet(
    edge: LiveEdge, client: Client, other: Client
) -> None:
    """3.2: good requests before it are answered"""
    mqid = await client.queue(b"q")
    await client.send(tmq.encode_enq(mqid, b"good") + b"\x63")
    assert await client.read(1) == b"\1"
    assert await client.ended() in ("fin", "reset")
    assert edge.refusals()["unknown_code"] == 1
    (line,) = edge.log.events("refused", reason="unknown_code")
    assert "63" in str(getattr(line, "detail", ""))
    assert await other.drain(await other.queue(b"q")) == [b"good"]


async def test_ten_thousand_connections(make_edge: MakeEdge) -> None:
    """All are served at once; as many as the limit of open files allows, for this process holds both ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, (hard - 500) // 2)
    edge = await make_edge(listeners={"document": {"port": 0, "max_connections": 10_100}})
    first = await edge.client()
    mqid = await first.queue(b"q")
    gc.collect()
    before = resident_bytes()
    clients = [await edge.client() for _ in range(count)]
    await until(lambda: len(edge.connections()) == count + 1)
    each = (resident_bytes() - before) / count
    assert each < 32 << 10, f"{each / 1024:.1f} KiB a connection, the client's end included"
    for client in clients:
        await client.send(tmq.encode_open(b"q") + tmq.encode_enq(mqid, b"one"))
    for client in clients:
        assert await client.read(65) == mqid + b"\1"
    assert await first.select(mqid) == count
    print(f"{count} connections, {each / 1024:.1f} KiB each with the client's end")


async def test_the_connection_beyond_the_limit_is_refused(make_edge: MakeEdge) -> None:
    """Others are unharmed"""
    edge = await make_edge(listeners={"document": {"port": 0, "max_connections": 2}})
    first, second = await edge.client(), await edge.client()
    third = await edge.client()
    assert await third.ended() in ("fin", "reset")
    assert await first.create(b"q")
    assert await second.open(b"q") is not None
    assert edge.refusals()["connection_limit"] == 1
