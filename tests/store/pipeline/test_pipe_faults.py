"""A call that cannot be encoded fails alone; the pipe continues."""

from __future__ import annotations

import asyncio

import pytest

from services.store.model.errors import StoreFault
from tests.store.desk import Desk, bodies

HALF = "half a character: \ud800"  # no octets stand for it


async def test_call_that_cannot_be_encoded_fails_alone(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"before")
    session, (held,) = desk.pipe.session, await desk.take(queue, 1)
    with pytest.raises(StoreFault):
        await desk.publish(queue, b"never", origin=HALF)
    await desk.put(queue, b"behind")
    await desk.settle([held])  # what was leased is leased still
    assert desk.pipe.session == session
    assert bodies(await desk.take(queue)) == [b"behind"]
    faults = [line for line in caplog.records if getattr(line, "action", "") == "pipe_fault"]
    assert [line.levelname for line in faults] == ["CRITICAL"]
    assert desk.refusals["store_fault"] >= 1


async def test_settles_of_a_failed_call_are_done(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"before")
    (held,) = await desk.take(queue, 1)
    spoilt, settled = desk.publishing(queue, b"never", origin=HALF), desk.settling([held])
    assert type((await asyncio.gather(spoilt, return_exceptions=True))[0]) is StoreFault
    await settled
    stats = await desk.stats(queue)
    assert (stats["ready"], stats["in_flight"]) == (0, 0)


async def test_failing_waiter_does_not_block_other_answers(desk: Desk) -> None:
    """Check that a failing callback of a waiter does not block the answers to others."""
    queue, went_on = await desk.queue(), list[str]()

    def fail() -> None:
        raise ValueError("a bug of one edge")

    desk.pipe.waiting.when_clear(fail)
    desk.pipe.waiting.when_clear(lambda: went_on.append("another"))
    session = desk.pipe.session
    assert await desk.publish(queue, b"a") == []
    assert (went_on, desk.pipe.session) == (["another"], session)


async def test_repeated_faults_between_good_calls(desk: Desk) -> None:
    """Check that order and sequence numbers are kept with repeated faults between good calls."""
    queue = await desk.queue()
    for number in range(5):
        await desk.put(queue, b"%d" % number)
        spoilt = [desk.publishing(queue, b"never", origin=HALF), desk.publishing(queue, b"nor this")]
        assert {type(each) for each in await asyncio.gather(*spoilt, return_exceptions=True)} == {StoreFault}
    assert bodies(await desk.take(queue)) == [b"0", b"1", b"2", b"3", b"4"]


async def test_origin_may_be_any_octets(desk: Desk) -> None:
    """Check that an origin which is not UTF-8 does not break a call."""
    queue = await desk.queue()
    assert await desk.publish(queue, b"a", origin="console \udcff") == []
    (delivery,) = await desk.domain.peek(queue, 10, 1 << 20)
    assert delivery.origin == "console \ufffd"  # as it is shown
