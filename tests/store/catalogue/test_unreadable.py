"""Queues with unreadable documents do not affect others (docs/store.md)."""

from __future__ import annotations

import json
import logging

import pytest

from services.store import Queue, QueueSpec
from services.store.model.errors import QueueUnreadable
from services.store.model.keys import RegistryKeys
from tests.servers import Server
from tests.store.desk import Desk, until

KEY = RegistryKeys().queues
REMOTE = {"protocol": "rqp-mca", "peers": ["west"], "queueId": 7}


def spoil(server: Server, queue: Queue) -> None:
    """Store documents as of a newer version, and an invalid one."""
    kept = json.loads(server.call("HGET", KEY, queue.name))
    server.call("HSET", KEY, queue.name, json.dumps({**kept, "spec": '{"colour": "blue"}'}))
    server.call("HSET", KEY, "broken", "{")


async def test_other_queues_are_listed(desk: Desk, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    spoil(server, await desk.queue("far", remote=REMOTE))
    await desk.queue("near", remote={**REMOTE, "queueId": 8})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [queue.name async for queue in desk.store.listing.queues()] == ["near"]
    assert sorted(vars(line)["queue"] for line in caplog.records) == ["broken", "far"]
    results: dict[str, str] = {}
    assert [queue.name async for queue in desk.store.listing.queues(unreadable=results.__setitem__)] == [
        "near"
    ]
    assert "colour: Extra inputs" in results["far"]
    assert sorted([one.name async for one in desk.store.registry.listed()]) == ["far", "near"]
    assert [queue.name for queue in await desk.store.catalogue.remotes()] == ["near"]


async def test_messages_are_accessible_if_the_id_is_readable(desk: Desk, server: Server) -> None:
    spoil(server, await desk.queue("far"))
    found, why = await desk.store.catalogue.find_leniently("far")
    assert (found.spec, "colour" in why) == (QueueSpec(ack_level="fsync"), True)
    for name, is_known in (("far", True), ("broken", False)):
        with pytest.raises(QueueUnreadable) as caught:
            await desk.store.catalogue.find(name)
        assert caught.value.is_known is is_known


async def test_changes_of_other_queues_are_followed(desk: Desk, server: Server) -> None:
    """Check that changes are followed even if a newer version changed another queue with a handle."""
    desk.store.start_serving()
    for name in ("far", "near"):
        await desk.queue(name)
    far, near = await desk.store.catalogue.find("far"), await desk.store.catalogue.find("near")
    heard: list[str] = []
    desk.store.catalogue.watch(heard.append)
    spoil(server, far)
    await desk.store.registry.publish_change("far")
    await until(lambda: "far" in heard)
    await desk.store.catalogue.declare(
        "near", QueueSpec(ack_level="memory", paused=True), "test", replace=True
    )
    await until(lambda: near.spec.paused)
    assert not far.spec.paused
