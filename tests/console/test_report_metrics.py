"""The report of the analytics job in the console's metrics: the same as the operator's."""

from __future__ import annotations

import asyncio

from services.kit.metrics.report_measures import DEATHS, TIME
from services.store.report.reports import write_report
from tests.console.live_console import LiveConsole
from tests.live import until
from tests.reports import NOW_MS, report
from tests.servers import Server


async def test_the_console_tells_what_the_store_has(server: Server) -> None:
    async with LiveConsole(server.url) as before:
        assert (await before.get("/report")).label == "no_report"
        registry = before.metrics.registry
        assert registry.get_sample_value(TIME.name) is None
        assert await asyncio.to_thread(write_report, server.url, report().encode(), NOW_MS)
    async with LiveConsole(server.url) as console:
        registry = console.metrics.registry
        await until(lambda: registry.get_sample_value(TIME.name) == NOW_MS / 1000)
        assert registry.get_sample_value(DEATHS.name, {"reason": "attempts"}) == 9
        reason = {"reason": "attempts", "edge": "console"}
        assert registry.get_sample_value(DEATHS.name, reason) is None  # one metric, whoever tells it
