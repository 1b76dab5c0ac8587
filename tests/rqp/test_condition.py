"""The condition of a transmission queue in the log and the store (rqp_mca.md 3.1)."""

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


async def test_each_reason_is_logged_once(edge: LiveEdge, condition: Condition) -> None:
    """Check that each reason is logged once until messages get through: alternating ones would fill the log."""
    for round in range(3):
        condition.report_failure(f"data_timeout: for the {round}. time")
        condition.report_failure("no_receiver: no machine has it")
        assert edge.value(STUCK, protocol="rqp-mca") == 1
    expected = [
        "messages are not delivered: data_timeout: for the 0. time",
        "messages are not delivered: no_receiver: no machine has it",
    ]
    assert logged(edge) == expected
    condition.set("")
    assert edge.value(STUCK, protocol="rqp-mca") == 0
    condition.report_failure("no_receiver: no machine has it")
    assert logged(edge) == [*expected, expected[1]]


async def test_store_has_the_latest_condition_and_the_error_count(
    edge: LiveEdge, queue: Queue, condition: Condition
) -> None:
    """Check that the store has the latest condition and the error count.

    `rqp send --wait` uses the count (docs/cli.md): a repeated failure counts again.
    """
    condition.report_failure("data_timeout: it does not confirm")
    condition.report_failure("no_receiver: no machine has it")
    await until(lambda: edge.has_condition(queue, "no_receiver: no machine has it"))
    condition.report_failure("no_receiver: no machine has it")
    condition.set("held: 3 too old")

    async def is_stored() -> bool:
        stats = await edge.stats(queue)
        return (stats["condition"], stats["send_errors"]) == ("held: 3 too old", 3)

    await until(is_stored)
