"""The console goes on with the trace of whoever asks it, and brings dead letters back in theirs."""

from __future__ import annotations

from services.store.model.trace_context import KEY, fresh
from services.store.pipeline.async_client import AsyncClient
from tests.console.live_console import LiveConsole
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.conftest import NewRecorder

PUT = "/queues/orders/messages"


async def test_it_goes_on_with_a_trace(server: Server, recorder: NewRecorder, collector: Collector) -> None:
    theirs = fresh()
    async with LiveConsole(server.url, recorder("console")) as console:
        queue = await console.declare("orders")
        reply = await console.ask("POST", PUT, {"body": "a pump"}, headers={KEY: theirs.header})
        assert reply.status == 201
        (sent,) = await collector.has("send orders")
        assert (sent.trace_id, sent.parent_id) == (f"{theirs.trace_id:032x}", f"{theirs.span_id:016x}")
        assert sent.service == "penstock-console"
        (shown,) = (await console.get(PUT)).items
        assert shown["attributes"] == {KEY: f"00-{sent.trace_id}-{sent.span_id}-01"}
        # dead, and back
        pipe = console.tools.open_domain(queue.domain).pipe
        await pipe.ready()
        client = AsyncClient(pipe)
        (leased,) = await client.take(queue, 1)
        await client.reject([leased], "refused")
        job = await console.ask("POST", "/queues/orders/dead/redrive", {"all": True})
        await console.job(job)
        (redriven,) = await collector.has("redrive orders")
        assert (redriven.trace_id, redriven.parent_id) == (sent.trace_id, sent.span_id)


async def test_what_is_no_context_is_not_kept(server: Server, recorder: NewRecorder) -> None:
    async with LiveConsole(server.url, recorder("console")) as console:
        await console.declare("orders")
        quiet = fresh().header[:-2] + "00"  # theirs is not traced, so this is not
        for header in (quiet, "nonsense"):
            assert (await console.ask("POST", PUT, {"body": "b"}, headers={KEY: header})).status == 201
        first, second = (await console.get(PUT)).items
        assert first["attributes"] == {KEY: quiet}
        assert second["attributes"][KEY] != "nonsense"


async def test_a_console_that_is_not_traced_keeps_nothing_of_it(server: Server) -> None:
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        header = {KEY: fresh().header}
        assert (await console.ask("POST", PUT, {"body": "a pump"}, headers=header)).status == 201
        (shown,) = (await console.get(PUT)).items
        assert shown["attributes"] == {}
