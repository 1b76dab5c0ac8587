"""A thousand queues."""

from __future__ import annotations

import asyncio

from tests.console.live_console import Events, LiveConsole
from tests.live import until
from tests.servers import Server

MANY = 1000


async def test_a_thousand_queues(server: Server) -> None:
    """All of them are told once, then only what changes; and everybody gets the same."""
    async with LiveConsole(server.url, refresh_s=0.5) as console:
        names = [f"q{number:04}" for number in range(MANY)]
        queues = [await console.declare(name) for name in names]
        async with (
            console.session.get(f"{console.base}/api/v1/events") as one,
            console.session.get(f"{console.base}/api/v1/events") as other,
        ):
            watchers = [Events(one), Events(other)]
            for events in watchers:
                whole = await events.next("queues")
                assert [row["name"] for row in whole["rows"]] == names
            await asyncio.gather(*(events.next("queues") for events in watchers))  # rates are known now
            await console.fill(queues[7], b"one")
            for events in watchers:
                assert [row["name"] for row in (await events.next("queues"))["rows"]] == ["q0007"]
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = await console.found(f"/queues?limit=400&cursor={cursor}")
            seen += [row["name"] for row in page["items"]]
            cursor = page["next"]
        assert seen == names

        async def counted() -> bool:
            totals = (await console.found("/overview"))["totals"]
            return bool(totals["queues"] == MANY and totals["ready"] == 1)

        await until(counted)
