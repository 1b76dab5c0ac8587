"""What is wrong with a transmission queue, as the log and the store have it (rqp_mca.md 3.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.rqp.condition import Condition
from services.store import Queue
from tests.live import until
from tests.rqp.live import LiveEdge

STUCK = "penstock_rqp_stuck_queues"


@pytest.fixture
async def queue(edge: LiveEdge) -> Queue:
    return await edge.declare("away")


@pytest.fixture
async def condition(edge: LiveEdge, queue: Queue) -> AsyncIterator[Condition]:
    fence = await edge.tools.open_domain().claims.own(queue, "test", 60_000)
    assert fence is not None
    condition = Condition(edge.service, queue, "rqp-mca", fence)
    yield condition
    await condition.close(lost=False)


def logged(edge: LiveEdge) -> list[str]:
    return [line.getMessage() for line in edge.log.events("rqp_stuck", queue="away")]


async def test_each_trouble_is_logged_once(edge: LiveEdge, condition: Condition) -> None:
    """Until messages get through: two that come in turns would fill the log."""
    for round in range(3):
        condition.report(f"data_timeout: for the {round}. time")
        condition.report("no_receiver: nobody has it")
        assert edge.value(STUCK, protocol="rqp-mca") == 1
    told = [
        "nothing gets through: data_timeout: for the 0. time",
        "nothing gets through: no_receiver: nobody has it",
    ]
    assert logged(edge) == told
    condition.say("")
    assert edge.value(STUCK, protocol="rqp-mca") == 0
    condition.report("no_receiver: nobody has it")
    assert logged(edge) == [*told, told[1]]


async def test_the_store_has_the_latest_and_how_many_there_were(
    edge: LiveEdge, queue: Queue, condition: Condition
) -> None:
    """Whoever waits for a message asks how many (docs/cli.md, rqp send): the same again is told again."""
    condition.report("data_timeout: it does not confirm")
    condition.report("no_receiver: nobody has it")
    await until(lambda: edge.has_condition(queue, "no_receiver: nobody has it"))
    condition.report("no_receiver: nobody has it")
    condition.say("held: 3 too old")

    async def told() -> bool:
        stats = await edge.stats(queue)
        return (stats["condition"], stats["send_errors"]) == ("held: 3 too old", 3)

    await until(told)
