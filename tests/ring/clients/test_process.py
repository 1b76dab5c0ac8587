"""The client port as a separate process, beside others on one store (ring.md 5.2)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.live import until
from tests.program import EdgeProgram
from tests.ring.clients.client import Client
from tests.ring.clients.live import CLIENTS, LiveClients
from tests.servers import Server


class RingProgram(EdgeProgram):
    edge = "ring"
    listeners = (f"listeners.{CLIENTS}.port=0", "listeners.ring=off")

    async def client(self) -> Client:
        return self.adopt(await Client.connect(self.place(CLIENTS)))


async def test_process_counts_requests_and_answers_them_before_it_exits(
    server: Server, edge: LiveClients, tmp_path: Path
) -> None:
    async with RingProgram(server.url, tmp_path) as program:
        client = await program.client()
        await client.create(b"q")
        await client.push(b"q", b"1", b"2", b"3")
        assert await client.messages(b"q", 4) == [b"1", b"2", b"3", None]
        await client.send(b"\0\0\0\7")
        assert await client.ended() == "fin"
        await until(lambda: counted(program, 3))
        assert await program.sample("penstock_requests_total", operation="pull", result="failed") == 1
        assert await program.sample("penstock_requests_total", operation="create_queue", result="ok") == 1
        assert await program.sample("penstock_refusals_total", reason="unknown_operation") == 1
        last, witness = await program.client(), await edge.client()
        await last.create(b"r")
        await last.push(b"r", b"4", b"5")
        assert await last.pull(b"r") == b"4"
        assert await program.stop() == 0
        assert await last.ended() == "fin"
        assert await witness.drain(b"r") == [b"4", b"5"]
        lines = [json.loads(line) for line in program.text().splitlines()]
        assert not [line for line in lines if "Traceback" in str(line)]


async def counted(program: EdgeProgram, pulls: int) -> bool:
    return await program.sample("penstock_requests_total", operation="pull", result="ok") == pulls
