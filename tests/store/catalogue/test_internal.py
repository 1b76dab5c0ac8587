"""Internal queues: clients can neither use nor declare them (docs/store.md)."""

from __future__ import annotations

import pytest

from services.store import INTERNAL_CLIENT, Client, DeadLetters, QueueSpec
from services.store.deadletters import QueuePurge, preview_purge
from services.store.model.errors import AccessDenied, NameReserved
from services.store.model.internal import KEEPER
from tests.store.desk import Desk
from tests.store.pipeline.test_access import VERBS, ask

NAME = "ring/1/127.0.0.1:8085"
CLIENTS = [INTERNAL_CLIENT, *(Client(edge) for edge in ("tmq", "ring", "rqp", "pubsub", "sysv", "cli"))]


@pytest.mark.parametrize("replace", [False, True])
async def test_internal_queue_cannot_be_declared(desk: Desk, replace: bool) -> None:
    await desk.store.catalogue.declare(NAME, QueueSpec(ack_level="memory"), "edge:ring", internal=True)
    for name in (NAME, "ring/1/other:8085", "ring/"):
        with pytest.raises(NameReserved, match="names that begin with ring/"):
            await desk.store.catalogue.declare(name, QueueSpec(ack_level="memory"), "cli", replace=replace)


async def test_internal_queue_of_a_running_node_is_not_deleted_or_purged(desk: Desk) -> None:
    await desk.store.catalogue.declare(NAME, QueueSpec(ack_level="memory"), "edge:ring", internal=True)
    queue, _ = await desk.store.catalogue.find_leniently(NAME)
    domain = desk.store.get_domain(queue.domain)
    fence = await domain.claims.own(queue, f"{NAME} its node", 60_000)
    assert fence
    emptying = QueuePurge(domain, queue, "run")
    for work in (
        lambda: desk.store.catalogue.delete(queue),
        lambda: desk.store.catalogue.delete(queue, if_empty=True),
        lambda: preview_purge(domain, queue),
        emptying.step,
    ):
        with pytest.raises(NameReserved, match="its ring node is running; stop the node"):
            await work()
    assert await domain.claims.disown(queue, f"{NAME} its node", fence)
    assert (await emptying.step()).is_done
    assert await desk.store.catalogue.delete(queue) == 0


@pytest.mark.parametrize("verb", VERBS)
async def test_only_the_keeper_uses_an_internal_queue(desk: Desk, verb: str) -> None:
    queue, _ = await desk.store.catalogue.declare(
        NAME, QueueSpec(ack_level="memory"), "edge:ring", internal=True
    )
    queue = await desk.store.catalogue.find(NAME)
    for client in CLIENTS:
        assert isinstance(await ask(desk, verb, client, queue), AccessDenied)
    assert not isinstance(await ask(desk, verb, KEEPER, queue), AccessDenied)


async def test_redrive_into_an_internal_queue_is_refused(desk: Desk) -> None:
    source, _ = await desk.store.catalogue.declare("orders", QueueSpec(ack_level="memory"), "cli")
    await desk.store.catalogue.declare(NAME, QueueSpec(ack_level="memory"), "edge:ring", internal=True)
    letters = DeadLetters(desk.store.get_domain("main"), source)
    with pytest.raises(AccessDenied):
        letters.check_target(await desk.store.catalogue.find(NAME))
