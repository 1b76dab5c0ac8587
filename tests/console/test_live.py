"""How much is looked at for one question (what the look finds is in test_queues.py and test_events.py)."""

from __future__ import annotations

import asyncio

from services.console.live import Live
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.servers import Server


async def test_a_question_looks_only_at_what_was_touched_before_it(server: Server) -> None:
    """Jobs touch their queues with every step: there is always something that was just touched."""
    async with LiveConsole(server.url) as console:
        for name in ("from", "to"):
            await console.declare(name)
        live = Live(console.tools, refresh_s=60)
        assert set((await live.look()).rows) == {"from", "to"}

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
                    await live.look()
                assert live.version - before == 2  # of each queue once
        finally:
            working.cancel()
