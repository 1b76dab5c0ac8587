"""The background work of every edge: upkeep of all queues, set-up of domains."""

import asyncio

import pytest

from services.store import PipeSettings, QueueSpec
from services.store.model.errors import NotInitialised
from services.store.pipeline.domain import Timing
from tests.servers import Server
from tests.store.desk import Desk, numbered, until

OFTEN = Timing(upkeep_s=0.05)


async def test_unopened_queues_get_upkeep(server: Server) -> None:
    """Check that messages expire and dead letters are trimmed without clients (docs/store.md)."""
    async with Desk(server) as producer, Desk(server, timing=OFTEN) as edge:
        queue = await producer.queue(message_ttl="50ms", domain="elsewhere")
        far = producer.another(domain="elsewhere")
        await far.put(queue, *numbered(3))
        edge.store.start_serving()

        async def expired() -> bool:
            return (await producer.stats(queue))["expired"] == 3

        await until(expired)
        assert edge.store.catalogue.known() == []


async def test_damaged_queue_does_not_block_upkeep_of_others(server: Server) -> None:
    async with Desk(server, timing=OFTEN) as desk:
        queues = [await desk.queue(name, message_ttl="50ms") for name in ("a", "b", "c")]
        for queue in queues:
            await desk.put(queue, *numbered(2))
        server.call("HSET", queues[1].keys[1], "limits", "nonsense")
        desk.store.start_serving()

        async def expired() -> bool:
            return [(await desk.stats(queues[i]))["expired"] for i in (0, 2)] == [2, 2]

        await until(expired)


async def test_new_domain_is_set_up(server: Server) -> None:
    """Check that a new domain is set up, so that an edge which creates queues there becomes ready."""
    async with Desk(server) as desk:
        edge = Desk(server, initialise=False)
        edge.store.start_serving("billing")
        try:
            pipe = edge.store.open_domain("billing").pipe
            await until(lambda: pipe.trouble is None)
            queue, _ = await edge.store.catalogue.declare("invoices", QueueSpec(domain="billing"), "test")
            assert (await desk.store.catalogue.find("invoices")).qid == queue.qid
        finally:
            await edge.close()


async def test_empty_store_waits_for_initialisation(own_server: Server) -> None:
    edge = Desk(own_server, initialise=False)
    edge.store.start_serving()
    try:
        for ask in (
            edge.store.catalogue.find("orders"),
            edge.store.setup.prepare("main"),
            anext(edge.store.listing.queues()),
        ):
            with pytest.raises(NotInitialised, match="penstock store init"):
                await ask
        async with Desk(own_server):
            await until(lambda: edge.store.fault_of() is None)
    finally:
        await edge.close()


async def test_domain_read_before_is_available_at_first_use(desk: Desk) -> None:
    """Check that the patience counts from the first use of a domain, not from the first read."""
    await desk.queue(domain="elsewhere")
    async with desk.another(pipe=PipeSettings(patience_s=0.2)) as edge:
        other_pipe = edge.store.get_domain("elsewhere").pipe
        await asyncio.sleep(0.3)  # longer than its patience
        pipe = edge.store.open_domain("elsewhere").pipe
        assert pipe is other_pipe
        assert pipe.gate.refuses() is None
        await pipe.ready()


async def test_upkeep_fault_of_another_domain_is_not_reported_here(desk: Desk) -> None:
    """Check that an upkeep fault in another domain does not make an edge unready."""
    await desk.queue("elsewhere", domain="second")
    async with desk.another(timing=Timing(upkeep_s=0.01)) as edge:
        edge.store.start_serving()
        await until(lambda: "second" in [domain.name for domain in edge.store.domains.all()])
        assert edge.store.fault_of() is None
        assert edge.store.fault_of("second") is None
        pipe = edge.store.open_domain("second").pipe
        await pipe.ready()
        assert edge.store.fault_of("second") is None
