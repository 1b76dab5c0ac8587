"""What every edge process does beside its work: upkeep of all queues, domains that nobody has used yet."""

import asyncio

import pytest

from services.store import PipeSettings, QueueSpec
from services.store.model.errors import NotInitialised
from services.store.pipeline.domain import Timing
from tests.servers import Server
from tests.store.desk import Desk, numbered, until

OFTEN = Timing(upkeep_s=0.05)


async def test_queues_that_nobody_has_opened_are_looked_after(server: Server) -> None:
    """Messages expire and dead letters are trimmed also where no client comes (docs/store.md)."""
    async with Desk(server) as producer, Desk(server, timing=OFTEN) as edge:
        queue = await producer.queue(message_ttl="50ms", domain="elsewhere")
        far = producer.another(domain="elsewhere")
        await far.put(queue, *numbered(3))
        edge.store.start_serving()

        async def expired() -> bool:
            return (await producer.stats(queue))["expired"] == 3

        await until(expired)
        assert edge.store.catalogue.known() == []


async def test_one_damaged_queue_does_not_keep_the_others_from_their_upkeep(server: Server) -> None:
    async with Desk(server, timing=OFTEN) as desk:
        queues = [await desk.queue(name, message_ttl="50ms") for name in ("a", "b", "c")]
        for queue in queues:
            await desk.put(queue, *numbered(2))
        server.call("HSET", queues[1].keys[1], "limits", "nonsense")
        desk.store.start_serving()

        async def expired() -> bool:
            return [(await desk.stats(queues[i]))["expired"] for i in (0, 2)] == [2, 2]

        await until(expired)


async def test_a_domain_that_nobody_has_used_is_set_up(server: Server) -> None:
    """Else an edge that is to create queues there would wait for one to be created before it is ready."""
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


async def test_an_empty_store_waits_for_its_set_up(own_server: Server) -> None:
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


async def test_a_domain_that_was_only_looked_at_is_not_away_when_it_is_first_used(desk: Desk) -> None:
    """However long that was: nobody had tried to reach the store, and it is waited for as ever."""
    await desk.queue(domain="elsewhere")
    async with desk.another(pipe=PipeSettings(patience_s=0.2)) as edge:
        looked_at = edge.store.get_domain("elsewhere").pipe
        await asyncio.sleep(0.3)  # longer than its patience
        pipe = edge.store.open_domain("elsewhere").pipe
        assert pipe is looked_at
        assert pipe.gate.refuses() is None
        await pipe.ready()


async def test_upkeep_of_another_domain_leaves_this_one_without_a_fault(desk: Desk) -> None:
    """A queue in a domain of its own must not take every edge out of service."""
    await desk.queue("elsewhere", domain="second")
    async with desk.another(timing=Timing(upkeep_s=0.01)) as edge:
        edge.store.start_serving()
        await until(lambda: "second" in [domain.name for domain in edge.store.domains.all()])
        assert edge.store.fault_of() is None
        assert edge.store.fault_of("second") is None
        pipe = edge.store.open_domain("second").pipe
        await pipe.ready()
        assert edge.store.fault_of("second") is None
