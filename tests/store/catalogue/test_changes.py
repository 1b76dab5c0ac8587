"""Changes of queues and peers: unknown outcomes, and conditional changes."""

from __future__ import annotations

import pytest

from services.store import QueueSpec
from services.store.model.errors import OutcomeUnknown, PeerChanged, QueueChanged
from services.store.model.peer import Peer, PeerSpec
from services.store.model.queues import Listed
from tests.servers import Server
from tests.store.desk import Desk

SERVER = PeerSpec(protocol="text", addresses=["10.0.0.7"])
NODE = PeerSpec(protocol="ring", addresses=["10.0.0.8"])


async def test_committed_change_with_lost_notice_has_an_unknown_outcome(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue = await desk.queue()
        # the notification, the last step, is refused
        own_server.call("ACL", "SETUSER", "default", "-publish")
        with pytest.raises(OutcomeUnknown):
            await desk.store.catalogue.release(Listed(queue.name, queue.qid, "test"))
        assert (await desk.store.catalogue.find(queue.name)).owner == "released test"


async def test_peer_is_changed_only_if_it_is_as_seen(desk: Desk) -> None:
    peers = desk.store.peers
    assert await peers.apply("shop", SERVER, "a", seen=b"")
    with pytest.raises(PeerChanged):
        await peers.apply("shop", NODE, "b", seen=b"")
    seen = await peers.document("shop")
    assert not await peers.apply("shop", NODE, "b", seen=seen)
    with pytest.raises(PeerChanged):
        await peers.apply("shop", SERVER, "a", seen=seen)
    with pytest.raises(PeerChanged):
        await peers.delete("shop", seen=seen)
    assert await peers.find("shop") == Peer("shop", NODE, "b")
    assert await peers.delete("shop", seen=await peers.document("shop"))
    assert await peers.document("shop") == b""
    with pytest.raises(PeerChanged):
        await peers.delete("shop", seen=seen)
    assert not await peers.delete("shop")


async def test_queue_is_deleted_only_if_not_declared_meanwhile(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    declared = await desk.store.catalogue.declared(queue)
    await desk.store.catalogue.declare(
        queue.name, QueueSpec(ack_level="memory", paused=True), "another", replace=True
    )
    with pytest.raises(QueueChanged):
        await desk.store.catalogue.delete(queue, declared=declared)
    assert (await desk.store.listing.stats(queue))["ready"] == 1
    assert await desk.store.catalogue.delete(queue, declared=await desk.store.catalogue.declared(queue)) == 1
    with pytest.raises(QueueChanged):  # it is deleted
        await desk.store.catalogue.delete(queue, declared=declared)


async def test_partly_deleted_queue_can_be_deleted(desk: Desk) -> None:
    """Check that a deletion which failed before it freed the name can be completed."""
    queue = await desk.queue()
    await desk.store.get_domain(queue.domain).delete(queue, "Delete")
    assert await desk.store.registry.document(queue.name) is not None
    assert await desk.store.catalogue.delete(queue, declared=await desk.store.catalogue.declared(queue)) == 0
    assert await desk.store.registry.document(queue.name) is None
