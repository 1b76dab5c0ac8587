"""Test which queues a request reads. The results are tested in test_queues.py and test_events.py."""

from __future__ import annotations

import asyncio

import pytest

from services.console.live.live import Live
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.servers import Server


async def test_request_reads_only_queues_touched_before_it(server: Server) -> None:
    """Check that a request reads only queues touched before it, as jobs touch their queues with every step."""
    async with LiveConsole(server.url) as console:
        for name in ("from", "to"):
            await console.declare(name)
        live = Live(console.tools, refresh_s=60)
        assert set((await live.snapshot()).rows) == {"from", "to"}

        async def work() -> None:
            while True:
                live.touch("from")
                live.touch("to")
                await asyncio.sleep(0)

        working = asyncio.create_task(work())
        await asyncio.sleep(0)
        try:
            for _ in range(5):
                before = live.version
                async with asyncio.timeout(PATIENCE_S):
                    await live.snapshot()
                assert live.version - before == 2  # once for each queue
        finally:
            working.cancel()


async def test_totals_include_own_changes(server: Server) -> None:
    """Check that totals include own changes without a poll of all queues."""
    names = ("queues", "ready", "inFlight", "dead", "bytes")
    async with LiveConsole(server.url, refresh_s=60) as console:
        await console.bury(await console.declare("others"), b"abc")

        async def totals() -> tuple[int, ...]:
            document = (await console.found("/overview"))["totals"]
            rows = (await console.get("/queues")).items
            for name in names[1:]:
                assert document[name] == sum(row[name] for row in rows)
            return tuple(document[name] for name in names)

        assert await totals() == (1, 0, 0, 1, 0)
        assert (await console.ask("PUT", "/queues/orders", {"ackLevel": "memory"})).status == 201
        assert await totals() == (2, 0, 0, 1, 0)
        for ready in (1, 2):
            assert (await console.ask("POST", "/queues/orders/messages", {"body": "abcd"})).status == 201
            assert await totals() == (2, ready, 0, 1, 4 * ready)
        assert (await console.ask("DELETE", "/queues/orders", headers={"If-Match": "*"})).status == 200
        assert await totals() == (1, 0, 0, 1, 0)


@pytest.mark.parametrize("is_touched", [False, True])
async def test_rates_start_again_after_a_failed_read(server: Server, is_touched: bool) -> None:
    """Check that rates start again after a failed read, as the next one covers more than one interval."""
    async with LiveConsole(server.url) as console:
        queue = await console.declare("orders")
        live = Live(console.tools, refresh_s=0)  # each request polls
        rates = [(await live.snapshot()).rows["orders"].rates["in"] for _ in range(2)]
        assert rates == [None, 0.0]
        server.call("SET", queue.keys[6], "damage")
        row = (await live.snapshot()).rows["orders"]
        assert (row.is_read, row.rates["in"]) == (False, None)
        server.call("DEL", queue.keys[6])
        await console.fill(queue, *[b"x"] * 1000)
        if is_touched:
            live.refresh_s = 60  # only touched queues are polled
            live.touch("orders")
        row = (await live.snapshot()).rows["orders"]
        live.refresh_s = 0
        assert is_touched or live.overview()["rates"]["in"] == 0
        assert (row.is_read, row.rates["in"], row.summary["ready"]) == (True, None, 1000)
        assert (await live.snapshot()).rows["orders"].rates["in"] == 0.0
