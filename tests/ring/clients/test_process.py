"""The client port as a program of its own, beside others of its kind on one store (ring.md 5.2)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from services.store import QueueSpec, Store
from tests.live import until
from tests.plain_client import told
from tests.program import EdgeProgram
from tests.ring.clients.client import Client
from tests.ring.clients.live import CLIENTS
from tests.servers import Server

SOON_DEAD = ("store.session_timeout_s=0.6", "store.heartbeat_s=0.2", "store.sweep_s=0.2")


class RingProgram(EdgeProgram):
    edge = "ring"
    listeners = (f"listeners.{CLIENTS}.port=0", "listeners.ring=off")

    async def client(self) -> Client:
        return self.adopt(await Client.connect(self.place(CLIENTS)))


async def test_its_pages_count_requests(server: Server, tmp_path: Path) -> None:
    async with RingProgram(server.url, tmp_path) as edge:
        client = await edge.client()
        await client.create(b"q")
        await client.push(b"q", b"1", b"2", b"3")
        assert await client.messages(b"q", 4) == [b"1", b"2", b"3", None]
        await client.send(b"\0\0\0\7")
        assert await client.ended() == "fin"
        await until(lambda: counted(edge, 3))
        assert await edge.sample("penstock_requests_total", operation="pull", result="failed") == 1
        assert await edge.sample("penstock_requests_total", operation="create_queue", result="ok") == 1
        assert await edge.sample("penstock_refusals_total", reason="unknown_operation") == 1
        assert await edge.stop() == 0
        lines = [json.loads(line) for line in edge.text().splitlines()]
        assert not [line for line in lines if "Traceback" in str(line)]


async def counted(edge: EdgeProgram, pulls: int) -> bool:
    return await edge.sample("penstock_requests_total", operation="pull", result="ok") == pulls


async def test_sigterm_answers_what_was_asked(server: Server, tmp_path: Path) -> None:
    async with RingProgram(server.url, tmp_path) as edge, RingProgram(server.url, tmp_path) as other:
        client, witness = await edge.client(), await other.client()
        await client.create(b"q")
        await client.push(b"q", b"1", b"2")
        assert await client.pull(b"q") == b"1"
        assert await edge.stop() == 0
        assert await client.ended() == "fin"
        assert await witness.drain(b"q") == [b"1", b"2"]


@dataclass
class History:
    """What the clients of all processes were told, by body."""

    confirmed: set[bytes] = field(default_factory=set)  # pushes that were answered OK
    sent: set[bytes] = field(default_factory=set)
    settled: list[bytes] = field(default_factory=list)  # pulled, and the next request was answered
    in_hand: set[bytes] = field(default_factory=set)  # pulled, then the connection broke: settled, or back


async def test_killed_again_and_again(server: Server, tmp_path: Path, chance: Random) -> None:
    """5.2: no push that was answered OK is lost; nothing that was settled is given out again"""
    history = History()
    await declare(server)
    async with RingProgram(server.url, tmp_path, *SOON_DEAD) as steady:
        witness = await steady.client()
        for number in range(3):
            async with RingProgram(server.url, tmp_path, *SOON_DEAD) as doomed:
                writers = [write(doomed, b"%d-%d" % (number, n), history) for n in range(3)]
                clients = asyncio.gather(*writers, *(read(doomed, history) for _ in range(2)))
                await asyncio.sleep(chance.uniform(0.1, 0.6))  # whatever it is doing then
                doomed.process.kill()
                await clients
        # what it held comes back once its session is taken for dead
        await until(lambda: nothing_leased(server))
        found = await witness.drain(b"q")
    assert history.confirmed
    assert history.confirmed <= {*found, *history.settled} | history.in_hand
    assert {*found, *history.settled} <= history.sent
    assert len({*found, *history.settled}) == len(found) + len(history.settled), "twice"


async def declare(server: Server) -> None:
    """A queue whose messages come back soon."""
    store = Store(server.url, "test")
    await store.catalogue.declare("q", QueueSpec.model_validate({"visibility_timeout": "100ms"}), "test")
    await store.close()


async def nothing_leased(server: Server) -> bool:
    store = Store(server.url, "test")
    try:
        return bool((await store.listing.stats(await store.catalogue.find("q")))["in_flight"] == 0)
    finally:
        await store.close()


async def write(edge: RingProgram, name: bytes, history: History) -> None:
    client = await edge.client()
    for n in range(100_000):
        body = b"%b-%d" % (name, n)
        history.sent.add(body)
        if await told(pushed(client, body)) is None:
            return
        history.confirmed.add(body)


async def pushed(client: Client, body: bytes) -> bool:
    await client.push(b"q", body)
    return True


async def read(edge: RingProgram, history: History) -> None:
    """One at a time: a message is settled for certain once the next pull is answered."""
    client, mine = await edge.client(), b""
    while (answer := await told(pulled(client))) is not None:
        if mine:
            history.settled.append(mine)
        mine = answer
    if mine:
        history.in_hand.add(mine)


async def pulled(client: Client) -> bytes:
    """Nothing: the queue was empty."""
    return await client.pull(b"q") or b""
