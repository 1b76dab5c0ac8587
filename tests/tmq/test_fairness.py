"""Test that a client with many requests that need no store does not delay others (tmq.md 7.3)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from protos import tmq
from tests.plain_client import CHUNK
from tests.servers import Server
from tests.tmq.client import Client
from tests.tmq.process import EdgeProgram

MIB = 1 << 20
Q = tmq.mqid_of(b"q")
AT_MOST_S = 1.0
ROUNDS = 20
FLOOD = tmq.encode_create(b"")


async def test_others_are_served_during_a_flood(server: Server, tmp_path: Path) -> None:
    # 7.3, 7.4: each of these requests is answered and counted without the store
    async with EdgeProgram(server.url, tmp_path) as program:
        other, flooder = await program.client(), await program.client()
        await other.queue(b"q")
        answered = Tally()
        tasks = [
            asyncio.ensure_future(send_for_ever(flooder, FLOOD)),
            asyncio.ensure_future(read_for_ever(flooder, answered)),
        ]
        try:
            await asyncio.wait_for(answered.begun.wait(), 20)
            late_s: list[float] = []
            for _ in range(ROUNDS):
                before, started = answered.octets, time.monotonic()
                assert await other.select(Q) == 0
                assert (await program.page("/healthz"))[0] == 200
                if (took_s := time.monotonic() - started) > AT_MOST_S:
                    late_s.append(took_s)
                assert len(late_s) < 2, f"{late_s} s for a SELECT and a page"  # a busy machine may stall once
                await answered.more_than(before)  # the flood continues
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            flooder.reset()


class Tally:
    """The number of octets with which the flood was answered."""

    def __init__(self) -> None:
        self.octets = 0
        self.begun = asyncio.Event()

    async def more_than(self, octets: int) -> None:
        async with asyncio.timeout(20):
            while self.octets <= octets:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def send_for_ever(client: Client, request: bytes) -> None:
    """Send requests as fast as the edge reads."""
    load = request * (MIB // len(request))
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.get_running_loop().sock_sendall(client.sock, load)


async def read_for_ever(client: Client, answered: Tally) -> None:
    """Read all replies: a flood with unread replies would soon be held up."""
    with contextlib.suppress(ConnectionError):
        while chunk := await asyncio.get_running_loop().sock_recv(client.sock, CHUNK):
            answered.octets += len(chunk)
            answered.begun.set()
