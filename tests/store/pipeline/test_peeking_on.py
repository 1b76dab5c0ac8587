"""Peek page by page: each ready message once, in delivery order."""

from __future__ import annotations

import random

import pytest

from services.store import Delivery, Queue
from tests.store.desk import Desk, bodies, numbered
from tests.store.pipeline.test_returns import singles


def end(page: list[Delivery]) -> int:
    return page[-1].position + page[-1].count - 1


async def paged(desk: Desk, queue: Queue, count: int, max_bytes: int = 4 << 20) -> list[bytes]:
    found: list[bytes] = []
    behind = -1
    while page := await desk.domain.peek(queue, count, max_bytes, behind):
        found += bodies(page)
        assert end(page) > behind
        behind = end(page)
    return found


@pytest.mark.parametrize("count", [1, 3, 7, 32, 33, 1000])
async def test_peek_pages_through_new_and_returned_messages(
    desk: Desk, chance: random.Random, count: int
) -> None:
    queue = await desk.queue()
    for first in range(0, 300, 50):  # entries of several lengths
        await desk.put(queue, *numbered(50, first))
        await desk.put(queue, b"alone %d" % first)
    held = singles(await desk.take(queue, 130))
    await desk.release(chance.sample(held, 60))
    whole = bodies(await desk.domain.peek(queue, 1000))
    assert len(whole) == 306 - 130 + 60
    assert await paged(desk, queue, count) == whole
    assert await paged(desk, queue, count, 1) == whole  # each page is full with its first message or entry


async def test_messages_taken_meanwhile_are_on_no_later_page(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    page = await desk.domain.peek(queue, 10)
    await desk.settle(await desk.take(queue, 45))
    assert bodies(await desk.domain.peek(queue, 10, behind=end(page))) == numbered(10, 45)
    (last,) = await desk.domain.peek(queue, 1, behind=end(page))
    await desk.settle(await desk.take(queue, 55))
    assert await desk.domain.peek(queue, 10, behind=end([last])) == []
    await desk.put(queue, b"new")
    assert bodies(await desk.domain.peek(queue, 10, behind=end([last]))) == [b"new"]


async def test_peeking_changes_nothing(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    await desk.release(singles(await desk.take(queue, 10))[::2])
    before = await desk.stats(queue)
    await paged(desk, queue, 7)
    after = await desk.stats(queue)
    assert {**after, "oldest_age_ms": 0} == {**before, "oldest_age_ms": 0}
    assert bodies(await desk.take(queue, 3)) == [b"m00000", b"m00002", b"m00004"]
