"""Test statuses of Peers, which are written after the store (docs/kubernetes.md, "Peer")."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from penstock_operator.cluster.resources import Key
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.peers.peers import Peers
from penstock_operator.peers.rqprc import Rqprc

from services.store import Store
from tests.operator.inside import Inside, read
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer
from tests.servers import Server, eventually

WRITTEN = "penstock_operator_status_patches_total"
NAMES = [f"p{number}" for number in range(5)]


class LocalPeers:
    """`Peers` in this process, and the edges that it notifies."""

    def __init__(self, inside: Inside, store: Store, namespace: str) -> None:
        self.enqueued: set[Key] = set()
        self.peers = Peers(
            store,
            inside.mirror,
            inside.statuses,
            Rqprc(inside.api, namespace, ""),
            inside.metrics,
            own=f"{namespace}/penstock",
            knows=lambda kind, there: there == namespace,
            lists_slices_of=lambda there: there == namespace,
            on_change=lambda: None,
            enqueue=self.enqueued.update,
        )


@pytest.fixture
async def local(inside: Inside, seen: Seen, store: Server) -> AsyncIterator[LocalPeers]:
    used = Store(store.url, "operator")
    await used.initialise()
    yield LocalPeers(inside, used, seen.namespace)
    await used.close(1.0)


async def test_peers_are_stored_before_statuses_are_written(
    local: LocalPeers, inside: Inside, seen: Seen
) -> None:
    """Check that all peers are stored before any status is written, so that none waits for the statuses of others."""
    seen.apply(*map(peer, NAMES))
    for name in NAMES:
        inside.mirror.put(read(seen, "peer", name))
    assert await local.peers.reconcile() == ""
    assert inside.count(WRITTEN) == 0
    assert {key.name for key in local.enqueued} == set(NAMES)
    for key in local.enqueued:
        resource = inside.mirror.get(key)
        assert resource is not None
        await local.peers.settle(resource)
    assert inside.count(WRITTEN) == len(NAMES)
    assert {seen.ready("peer", name) for name in NAMES} == {("True", "Declared")}


async def test_outdated_verdict_is_not_written(local: LocalPeers, inside: Inside, seen: Seen) -> None:
    seen.apply(peer("shop"))
    inside.mirror.put(read(seen, "peer", "shop"))
    await local.peers.reconcile()
    seen.apply(peer("shop", "rqp-mca", "10.0.0.9"))
    await local.peers.settle(read(seen, "peer", "shop"))
    assert inside.count(WRITTEN) == 0


async def test_deleted_peer_is_not_counted(inside: Inside, seen: Seen) -> None:
    """Check that a deleted peer is not counted, whether or not a write to the API server shows that it is gone."""
    seen.apply(peer("gone"), peer("there"))
    gone, there = read(seen, "peer", "gone"), read(seen, "peer", "there")
    for one in (gone, there):
        inside.mirror.put(one)
    seen.delete("peer", "gone")
    inside.mirror.delete(gone)
    for one in (gone, there):
        await inside.statuses.settle(one, Verdict(Ready.NO, Reason.CONFLICT, "another has its name"))
    inside.statuses.count()
    assert inside.count("penstock_operator_resources") == 1


def test_peer_kept_by_a_foreign_finalizer_is_removed(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    document = peer("shop")
    seen.apply({**document, "metadata": {"name": "shop", "finalizers": ["example.org/hold"]}})
    seen.becomes("peer", "shop", "True", "Declared")
    seen.delete("peer", "shop", patience_s=0)
    found = seen.becomes("peer", "shop", "False", "Removed")
    assert found["message"] == "being deleted; waiting for the finalizers example.org/hold"
    assert keeper.peers() == {}
    eventually(lambda: seen.events("shop") == ["Declared", "Removed"])
    seen.finalizers("peer", "shop")
    eventually(lambda: operator.metric("penstock_operator_resources", kind="peers") == 0)
