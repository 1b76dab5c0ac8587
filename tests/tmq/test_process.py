"""Test the edge as a process: with workers, health pages, drain and kills."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from protos import tmq
from services.store import QueueSpec, Store
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.process import EdgeProgram, resident_bytes

Q = tmq.mqid_of(b"q")
MISSING = tmq.mqid_of(b"missing")
SHORT_LIVED = ("store.session_timeout_s=0.6", "store.heartbeat_s=0.2", "store.sweep_s=0.1")
MANY = 2_500
KIB = 1 << 10
IDLE_KIB = 8  # resident, for each connection that has sent no request: 3.3 were measured
USED_KIB = 20  # the same after all have sent requests at the same time: 9.4 were measured


@pytest.fixture
async def tools(server: Server) -> AsyncIterator[Store]:
    """Yield a client of the store."""
    store = Store(server.url, "test")
    yield store
    await store.close()


async def stats(tools: Store) -> dict[str, Any]:
    return await tools.listing.stats(await tools.catalogue.find("q"))


async def is_free(tools: Store) -> bool:
    return bool((await stats(tools))["in_flight"] == 0)


async def worker_of(program: EdgeProgram, client: Client) -> int:
    """Return the process that serves this client, as its refusals show."""
    assert not await client.enq(MISSING, b"x")
    peer = "{}:{}".format(*client.address)
    (line,) = await until(lambda: program.events("refused", peer=peer))
    return int(line["conn"].partition(".")[0], 16)


async def spread_over(program: EdgeProgram, workers: int) -> dict[int, Client]:
    """Return a client on each of this many workers; the system chooses the worker of a connection."""
    found: dict[int, Client] = {}
    while len(found) < workers:
        client = await program.client()
        found.setdefault(await worker_of(program, client), client)
    return found


async def test_requests_are_served_and_counted(server: Server, tmp_path: Path) -> None:
    # 1.1, 7.4: one /metrics for all workers
    workers = 2
    async with EdgeProgram(server.url, tmp_path, workers=workers) as program:
        clients = await spread_over(program, workers)
        assert len(clients) == workers
        first, *_, last = [*clients.values(), *clients.values()]
        for client in clients.values():
            await client.queue(b"q")
        await first.put(Q, *(b"%d" % n for n in range(50)))
        assert await last.messages(Q, 51) == [*(b"%d" % n for n in range(50)), None]
        reference = await program.client("reference")
        assert await reference.open(b"q") == Q
        for operation, result, number in (("enq", "ok", 50), ("dnq", "ok", 50), ("dnq", "failed", 1)):
            await until(lambda which=(operation, result, number): counted(program, *which))
        refused = await program.sample("penstock_refusals_total", reason="mqid_not_open")
        assert refused == len(program.events("refused", reason="mqid_not_open")) >= workers
        assert await program.sample("penstock_connections", listener="reference") == 1
        assert await program.sample("penstock_local_errors_total") == 0
        for client in (*clients.values(), reference):
            client.close()
        assert await program.stop() == 0


async def counted(program: EdgeProgram, operation: str, result: str, number: int) -> bool:
    return await program.sample("penstock_requests_total", operation=operation, result=result) == number


async def test_sigterm_returns_leased_messages(
    server: Server, tmp_path: Path, tools: Store, make_edge: MakeEdge
) -> None:
    # 5.4, 6.1: messages return without a time limit, and the next process delivers all
    async with EdgeProgram(server.url, tmp_path, "drain.spread_s=0", workers=2) as program:
        unsettled, inside, idle = [await program.client() for _ in range(3)]
        for client in (unsettled, inside, idle):
            await client.queue(b"q")
        await idle.put(Q, b"1", b"2", b"3")
        assert await unsettled.dnq(Q) == b"1"
        assert await inside.ts()
        assert await inside.dnq(Q) == b"2"
        assert await inside.enq(Q, b"never")
        program.process.send_signal(signal.SIGTERM)
        for client in (unsettled, inside, idle):
            assert await client.ended() == "fin"
            client.close()
        assert await program.ended() == 0
    found = await stats(tools)
    assert (found["ready"], found["in_flight"], found["dead_letters"]) == (3, 0, 0)
    client = await (await make_edge()).client()
    await client.queue(b"q")
    assert await client.drain(Q) == [b"1", b"2", b"3"]


async def test_killed_worker_loses_nothing_and_is_restarted(
    server: Server, tmp_path: Path, tools: Store
) -> None:
    # 5.4, 6.1: kill -9 of one of two workers; its messages return once it is known to be dead
    await tools.catalogue.declare("q", QueueSpec(visibility_timeout="100ms"), "test")
    async with EdgeProgram(server.url, tmp_path, *SHORT_LIVED, workers=2) as program:
        (victim, its_client), (_, other) = (await spread_over(program, 2)).items()
        for client in (its_client, other):
            assert await client.open(b"q") == Q
        await other.put(Q, b"1", b"2", b"3")
        assert await its_client.dnq(Q) == b"1"
        assert await its_client.ts()
        assert await its_client.dnq(Q) == b"2"
        assert await its_client.enq(Q, b"never")
        os.kill(victim, signal.SIGKILL)
        with pytest.raises((ConnectionResetError, EOFError)):
            await its_client.read(1)
        assert await other.enq(Q, b"unharmed")
        await until(lambda: is_free(tools))
        assert await other.drain(Q) == [b"2", b"3", b"unharmed"]
        await until(lambda: len(program.events("started")) == 3)
        assert len(await spread_over(program, 2)) == 2


async def test_killed_edge_loses_nothing(
    server: Server, tmp_path: Path, tools: Store, make_edge: MakeEdge
) -> None:
    # 5.4, 6.1: kill -9 of the only process; answered requests are stored, unsettled messages are redelivered
    await tools.catalogue.declare("q", QueueSpec(visibility_timeout="100ms"), "test")
    async with EdgeProgram(server.url, tmp_path, *SHORT_LIVED) as program:
        client = await program.client()
        assert await client.open(b"q") == Q
        await client.put(Q, *(b"%d" % n for n in range(500)))
        assert await client.dnq(Q) == b"0"
        program.process.kill()
        await program.ended()
    edge = await make_edge()
    await until(lambda: is_free(tools))
    client = await edge.client()
    assert await client.open(b"q") == Q
    assert await client.drain(Q) == [b"%d" % n for n in range(500)]


async def test_thousands_of_connections(server: Server, tmp_path: Path) -> None:
    # all are served in bounded memory; one more connection is refused, and then there is room again
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = min(MANY, hard - 200)
    print(f"{most} connections; {hard} files may be open")
    async with EdgeProgram(server.url, tmp_path, f"listeners.document.max_connections={most}") as program:
        first = await program.client()
        await first.queue(b"q")
        before = resident_bytes(program.process.pid)
        clients = [await program.client() for _ in range(most - 1)]
        await until(lambda: open_now(program, most))
        idle = (resident_bytes(program.process.pid) - before) / most
        assert idle < IDLE_KIB * KIB, f"{idle / KIB:.1f} KiB for an idle connection"
        beyond = await program.client()
        with pytest.raises((ConnectionResetError, EOFError)):
            await beyond.read(1)
        for client in clients:
            await client.send(tmq.encode_open(b"q") + tmq.encode_enq(Q, b"one"))
        for client in clients:
            assert await client.read(65) == Q + b"\1"
        used = (resident_bytes(program.process.pid) - before) / most
        assert used < USED_KIB * KIB, f"{used / KIB:.1f} KiB for a connection with a queue open"
        assert await first.select(Q) == most - 1
        assert await program.sample("penstock_refusals_total", reason="connection_limit") == 1
        for client in clients:
            client.reset()
        await until(lambda: open_now(program, 1))
        assert await first.select(Q) == most - 1
        after = await program.client()
        assert await after.open(b"q") == Q


async def open_now(program: EdgeProgram, count: int) -> bool:
    await asyncio.sleep(0.05)  # the page needs time in the edge, too
    return await program.sample("penstock_connections", listener="document") == count
