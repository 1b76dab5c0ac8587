"""Hostile clients: random bytes, floods, readers that do not read. Memory is bounded, others are served."""

from __future__ import annotations

import asyncio
import os
import random
import time

import pytest

from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server

SEED = int(os.environ.get("TEST_SEED", "0")) or random.randrange(1 << 32)


async def check_served(edge: LiveEdge, within_s: float = 5.0) -> None:
    """Check that another client can subscribe and send."""
    began = time.monotonic()
    client = await edge.client()
    await client.subscribe(b"1", b"well")
    await client.send(b"SEND well x\n")
    assert sorted(await client.lines(2)) == [b"MESSAGE 1 x\n", b"OK\n"]
    assert time.monotonic() - began < within_s
    client.close()


async def test_each_line_of_noise_is_answered(edge: LiveEdge) -> None:
    """Check that each line of random bytes has one answer, and the connection stays (2.1)."""
    print(f"TEST_SEED={SEED}")
    chance = random.Random(SEED)
    client = await edge.client()
    sent = 0
    for _ in range(100):
        noise = chance.randbytes(chance.randrange(1, 4000))
        await client.send(noise)
        sent += noise.count(b"\n")
    await client.send(b"\nPING\n")
    answers = await client.lines(sent + 1)
    assert all(line.startswith(b"ERROR ") for line in answers)
    assert await client.line() == b"OK\n"
    await check_served(edge)


@pytest.mark.parametrize("line", [b"SEND t x\n", b"PING\n"])
async def test_flooding_client_that_does_not_read_is_paused(
    server: Server, start: Start, line: bytes
) -> None:
    """Check that a flooding client that does not read is paused, without effects on others.

    Its answers fill its output limit; then it is not read any more.
    """
    edge = await start(server)
    flooder = await edge.client(receive_buffer=4096)
    flooder.stop_reading()
    flooder.writer.transport.set_write_buffer_limits(high=1 << 16)
    chunk = line * 1000
    try:
        async with asyncio.timeout(1.0):
            for _ in range(20_000):
                flooder.writer.write(chunk)
                await flooder.writer.drain()
    except TimeoutError:
        pass
    else:
        pytest.fail("all of it was taken")
    held = max(connection.backlog() for connection in edge.connections())
    assert held < 2 << 20
    assert edge.budget.total < 4 << 20
    await check_served(edge)


async def test_flooding_client_does_not_starve_others(edge: LiveEdge) -> None:
    flooders = [await edge.client() for _ in range(4)]

    async def flood(client: Client) -> None:
        while True:
            client.writer.write(b"PING\n" * 5000)
            for _ in range(5000):
                await client.reader.readline()

    tasks = [asyncio.create_task(flood(client)) for client in flooders]
    try:
        for _ in range(5):
            await check_served(edge)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_reset_in_every_state_leaves_nothing_behind(edge: LiveEdge) -> None:
    """Check that a reset in every state leaves nothing of the connection behind."""
    beginnings = [
        b"",
        b"SEN",
        b"SEND t x\n" * 300,
        b"SUBSCRIBE 1 t\n",
        b"SUBSCRIBE 1 t*\nSEND t ",
        b"x" * 100_000,
    ]
    for turn in range(60):
        client = await edge.client()
        await client.send(beginnings[turn % len(beginnings)])
        if turn % 2:
            await asyncio.sleep(0)
        client.close()
    async with asyncio.timeout(20):
        while edge.connections() or edge.budget.total:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert edge.routed == 0
    assert len(edge.service.slow_consumers) == 0
    assert edge.service.backlogs.total == 0
    await check_served(edge)
