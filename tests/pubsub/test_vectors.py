"""Run the vectors of pubsub.md as conversations with a live edge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pubsub.client import Client
from tests.pubsub.live import LiveEdge

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pubsub.json").read_text())


@pytest.mark.parametrize("pieces", ["whole", "octets"])
@pytest.mark.parametrize("vector", VECTORS, ids=[f"{v['section']} {v['name']}" for v in VECTORS])
async def test_vector(edge: LiveEdge, vector: dict[str, Any], pieces: str) -> None:
    clients: dict[str, Client] = {}
    for step in vector["steps"]:
        if step["on"] not in clients:
            clients[step["on"]] = await edge.client()
        client = clients[step["on"]]
        data = step["send"].encode()
        for piece in [data] if pieces == "whole" else [data[i : i + 1] for i in range(len(data))]:
            await client.send(piece)
        for expected in step["expect"]:
            line = (await client.line()).decode()
            assert line == expected or (expected == "ERROR " and line.startswith(expected))
    for client in clients.values():
        await client.nothing_more() if not vector["name"].startswith("crlf") else None
