"""Test a store that rejects all or some writes (docs/kubernetes.md, "Failures")."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import Server, eventually

NEVER_S = 3600  # no full pass comes to help
Refusing = Callable[[Server], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def full(store: Server) -> Iterator[None]:
    """Run the block with a store that is out of memory."""
    with store.configured(maxmemory="1"):
        yield


@contextlib.contextmanager
def read_only(store: Server) -> Iterator[None]:
    """Run the block with a store that is a replica, like a former primary after a failover."""
    store.call("REPLICAOF", "127.0.0.1", "1")
    yield
    store.call("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("refusing", [full, read_only])
def test_store_that_refuses_writes(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server, refusing: Refusing
) -> None:
    operator = new_operator(sweep_s=NEVER_S).ready()
    seen.declared(queue("before"), peer("old"))
    with refusing(store):
        seen.apply(queue("orders"), peer("shop"))
        for kind, name in (("queue", "orders"), ("peer", "shop")):
            seen.becomes(kind, name, "Unknown", "StoreUnavailable")
        status, why = operator.page("readyz")
        assert (status, "the store cannot be used now" in why) == (503, True)
        assert operator.metric("penstock_operator_store_up") == 0
        assert seen.ready("peer", "old") == ("True", "Declared")
        assert seen.ready("queue", "before") == ("True", "Declared")
    for kind, name in (("queue", "orders"), ("peer", "shop")):
        seen.becomes(kind, name, "True", "Declared")
    operator.ready()
    assert operator.metric("penstock_operator_store_up") == 1
    assert keeper.owner("orders") == f"kubernetes {seen.namespace}/orders"
    assert set(keeper.peers()) == {"old", "shop"}


def test_full_store_allows_deletion_of_peers(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server
) -> None:
    """Check that failed writes to a full store do not block deletions of peers."""
    new_operator(sweep_s=NEVER_S).ready()
    seen.declared(*(peer(name) for name in ("one", "two", "three")))
    with full(store):
        seen.apply(peer("new"), peer("one", "rqp-mca", "10.0.0.9"))
        seen.becomes("peer", "one", "Unknown", "StoreUnavailable")
        seen.delete("peer", "three")
        eventually(lambda: set(keeper.peers()) == {"one", "two"})
        assert seen.ready("peer", "two") == ("True", "Declared")
    seen.becomes("peer", "new", "True", "Declared")
    eventually(lambda: keeper.peers()["one"][1] == ("10.0.0.9",))
