"""The ack level of documents without one: the table in docs/guarantees.md, "Ack levels"."""

from __future__ import annotations

import json

import pytest

from services.store.model.ack_levels import Promises
from services.store.model.errors import AckLevelRefused
from services.store.model.spec import QueueSpec
from tests.store.desk import Desk
from tests.topologies import Replicated

SYNCS = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
LAZY = {**SYNCS, "appendfsync": "everysec"}


def promises(mode: str, replicas: int, settings: dict[str, str]) -> Promises:
    return Promises("redis", "7.4.0", mode, replicas, settings)


@pytest.mark.parametrize(
    ("mode", "replicas", "settings", "level"),
    [
        ("single", 0, SYNCS, "fsync"),
        ("single", 2, SYNCS, "fsync"),
        ("single", 0, LAZY, "memory"),
        ("single", 2, LAZY, "memory"),
        ("single", 0, {}, "memory"),
        ("sentinel", 1, LAZY, "replicated:1"),
        ("sentinel", 2, SYNCS, "replicated:1"),
        ("cluster", 3, SYNCS, "replicated:1"),
    ],
)
def test_unset_level_is_the_strictest_that_the_store_guarantees(
    mode: str, replicas: int, settings: dict[str, str], level: str
) -> None:
    there = promises(mode, replicas, settings)
    assert there.settled(QueueSpec()).ack_level == level
    there.check(level)


@pytest.mark.parametrize(
    ("mode", "replicas", "settings", "had", "level"),
    [
        ("sentinel", 0, SYNCS, "replicated:1", "replicated:1"),  # its replicas are away at the moment
        ("sentinel", 2, SYNCS, "memory", "replicated:1"),  # its replicas were away at its creation
        ("sentinel", 2, SYNCS, "fsync", "replicated:1"),  # created on a single server
        ("single", 0, LAZY, "fsync", "fsync"),  # refused rather than weakened
    ],
)
def test_unset_level_is_raised_and_never_weakened(
    mode: str, replicas: int, settings: dict[str, str], had: str, level: str
) -> None:
    assert promises(mode, replicas, settings).settled(QueueSpec(), had).ack_level == level


@pytest.mark.parametrize(
    ("mode", "settings", "advice"),
    [
        ("sentinel", SYNCS, "use replicated:1"),
        ("cluster", SYNCS, "use replicated:1"),
        ("single", LAZY, "memory"),
    ],
)
def test_explicit_level_that_cannot_be_guaranteed_is_refused(
    mode: str, settings: dict[str, str], advice: str
) -> None:
    there = promises(mode, 1, settings)
    with pytest.raises(AckLevelRefused, match=advice):
        there.check(there.settled(QueueSpec(ack_level="fsync"), "replicated:1").ack_level)


def test_advice_names_a_level_that_the_store_guarantees() -> None:
    with pytest.raises(AckLevelRefused, match=r"or use replicated:1$"):
        promises("sentinel", 1, SYNCS).check("replicated:2")


async def test_document_without_level_becomes_replicated_under_sentinel(whole_replicated: Replicated) -> None:
    """Check this also for documents of older versions, for which no level meant fsync."""
    async with Desk(whole_replicated.url) as desk:
        queue, _ = await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
        assert (
            queue.spec.ack_level
            == (await desk.store.catalogue.find("orders")).spec.ack_level
            == "replicated:1"
        )
        keys = desk.store.registry.keys
        old = json.loads(await desk.domain.link.call("HGET", keys.queues, "orders"))
        await desk.domain.link.call("HSET", keys.queues, "orders", json.dumps({**old, "spec": "{}"}))
        async with desk.another() as other:
            found = await other.store.catalogue.find("orders")
            assert (found.spec.ack_level, found.unkept) == ("fsync", True)
            await other.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
            found = await other.store.catalogue.find("orders")
            assert (found.spec.ack_level, found.unkept) == ("replicated:1", False)


@pytest.mark.parametrize("mode", ["sentinel", "cluster"])
def test_store_that_never_had_a_replica_keeps_memory(mode: str) -> None:
    there = promises(mode, 0, SYNCS)
    there.check(there.settled(QueueSpec()).ack_level)
    assert there.settled(QueueSpec()).ack_level == "memory"


async def test_only_new_queues_are_refused_while_replicas_are_away(whole_replicated: Replicated) -> None:
    """Check that only new queues are refused: created in a failover, they could lose messages in the next one."""
    async with Desk(whole_replicated.url) as desk:
        before, store = await desk.queue("before"), desk.store
        with whole_replicated.without_replicas():
            await store.initialise()  # as an operator does after a failover
            with pytest.raises(AckLevelRefused, match=r"this store has 0 now: add .* wait .* or use memory"):
                await store.catalogue.declare("after", QueueSpec(), "test", replace=True)
            for level in ("", "replicated:1"):
                paused = QueueSpec(ack_level=level, paused=True)
                changed, _ = await store.catalogue.declare("before", paused, "test", replace=True)
                assert changed.spec == before.spec.model_copy(update={"paused": True})
            lax, _ = await store.catalogue.declare("lax", QueueSpec(ack_level="memory"), "test")
            assert lax.spec.ack_level == "memory"
        again, _ = await store.catalogue.declare("after", QueueSpec(), "test")
        assert again.spec.ack_level == "replicated:1"
