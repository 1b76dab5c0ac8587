"""Two processes that share one node name and one store (ring.md 1.2, 4.7)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from services.ring.node.outgoing import ownership
from tests.live import until
from tests.ring.chain.live import LiveRing
from tests.ring.links.conftest import NewServer

NAME = "127.0.0.1:twice"


async def test_second_node_of_the_same_name_stays_away_until_the_first_ends(
    new_server: NewServer, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the second process reports the conflict and becomes the node when the first ends (4.7)."""
    monkeypatch.setattr(ownership, "DUPLICATE_S", 0.5)
    server = await new_server()
    async with AsyncExitStack() as stack:

        async def start(name: str | None = None) -> LiveRing:
            node = LiveRing(server.url, port, name)
            await node.open()
            stack.push_async_callback(node.close)
            return node

        other, living = await start(), LiveRing(server.url, port, NAME)
        await living.open()
        try:
            await until(lambda: living.successor == other.station.node.name)
            second = await start(NAME)
            await until(lambda: "another process" in (second.pages["/ring"]()["away"] or ""))
            await until(lambda: second.station.node.is_away)
            one, two = await until(partial(titles, other))
            assert one["away"] is None
            assert "another process with this node's name" in two["away"]
            assert second.successor is second.station.predecessor is None
        finally:
            await living.close()
        await until(lambda: second.successor == other.station.node.name)
        await until(partial(is_the_node, other))


async def board(node: LiveRing) -> dict[str, dict[str, Any]]:
    return {each.name: each.document for each in await node.tools.ring_nodes.all()}


async def titles(node: LiveRing) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the status of both nodes."""
    by_name = {name: document for name, document in (await board(node)).items() if name.startswith(NAME)}
    second = [document for name, document in by_name.items() if "(process " in name]
    return (by_name[NAME], second[0]) if len(by_name) == 2 and second else None


async def is_the_node(node: LiveRing) -> bool:
    reported = await board(node)
    return set(reported) == {NAME, node.station.node.name.decode()} and reported[NAME]["away"] is None
