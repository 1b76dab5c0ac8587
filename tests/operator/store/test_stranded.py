"""Test the messages of a ring node that is gone (docs/operations.md, "Rings")."""

from __future__ import annotations

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.servers import eventually
from tests.store.desk import Desk

METRIC = "penstock_operator_ring_stranded_messages"
DAMAGED = ("ring/7/a.example:8085", "ring/7/b.example:8085")
LEFT = "ring/7/gone.example:8085"
# from earlier, with owners
CLIENTS = {"ring-of-bells": "edge:ring", "ring/orders": "edge:ring", "ring/7/orders": "edge:tmq"}


async def _damage(desk: Desk) -> None:
    """Make queues unreadable, which must neither stop the checks nor hide the other queues."""
    one, other = [await desk.store.catalogue.find(name) for name in DAMAGED]
    await desk.domain.link.call("HSET", one.keys[1], "added", "many")
    await desk.domain.link.call("SET", other.keys[6], "damage")


def test_stranded_messages_are_counted_until_the_node_returns(
    new_operator: NewOperator, keeper: Keeper
) -> None:
    nodes = dict.fromkeys((LEFT, *DAMAGED, "ring/7/nothing.example:8085"), "edge:ring")
    for name, owner in {**nodes, **CLIENTS}.items():
        keeper.declare(name, owner)
    keeper.put(LEFT, b"one", b"two")
    keeper.do(_damage)
    for name in CLIENTS:
        keeper.put(name, b"not a node's")
    operator = new_operator(sweep_s=1).ready()
    eventually(lambda: operator.metric(METRIC, queue=LEFT) == 2)
    assert operator.metric(METRIC) == 2

    async def is_there_again(desk: Desk) -> None:
        assert await desk.domain.claims.own(
            await desk.store.catalogue.find(LEFT), "gone.example:8085 1", 60_000
        )

    keeper.do(is_there_again)
    eventually(lambda: operator.metric(METRIC) == 0)
    assert METRIC in operator.page("metrics")[1]
