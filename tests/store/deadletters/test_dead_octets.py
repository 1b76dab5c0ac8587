"""Large dead letters: each call to the store is bounded by octets (docs/store.md)."""

import re
from typing import Any

import pytest

from services.store import Filter
from services.store.deadletters.dead_letters import PAGE
from services.store.model import records
from services.store.model.queues import Queue
from services.store.redis.link import Link
from tests.store.desk import Desk, numbered


async def test_page_is_bounded_by_octets(desk: Desk) -> None:
    """Check that a page is bounded by octets, and that bodies beyond the requested octets are not sent."""
    queue = await desk.queue()
    large = [bytes([number]) * (3 << 20) for number in range(5)]
    for body in (*large, b"small", b""):
        await desk.bury(queue, records.encode(body), "injured")
    letters = desk.dead(queue)
    assert [d.body async for d in letters.matching()] == [*large, b"small", b""]
    sizes = [sum(letter.size for letter in step) async for step in letters.steps(Filter())]
    assert sizes == [6 << 20, 6 << 20, (3 << 20) + 5]
    seen = [(d.body, d.size) async for d in letters.matching(octets=2)]
    assert seen == [*((body[:2], 3 << 20) for body in large), (b"sm", 5), (b"", 0)]
    assert [d.body async for d in letters.matching(Filter(body=re.compile(b"all")), octets=0)] == [b"small"]
    one = (await anext(letters.matching())).id
    assert [[d.body for d in step] async for step in letters.steps(Filter(ids=(one,)))] == [large[:1]]


async def test_large_dead_letters_are_read_one_by_one(desk: Desk) -> None:
    """Check that large dead letters are read one by one, so that other clients need not wait."""
    queue = await desk.queue()
    large = [bytes([number]) * (3 << 20) for number in range(5)]
    bodies = [*numbered(7), *large, *numbered(9)]
    for body in bodies:
        await desk.bury(queue, records.encode(body), "injured")
    assert [letter.body async for letter in desk.dead(queue).matching()] == bodies
    assert await _most_at_once(desk, queue) < 7 << 20


async def test_dead_letters_of_older_versions_are_read_one_by_one(desk: Desk) -> None:
    """Check this for dead letters of older versions, whose sizes are unknown until another message dies."""
    queue = await desk.queue()
    bodies = [*numbered(7), *(bytes([number]) * (3 << 20) for number in range(5)), *numbered(9)]
    for body in bodies:
        await desk.bury(queue, records.encode(body), "injured")
    await desk.domain.link.call("HDEL", queue.keys[1], "heavy_dead")
    assert await _most_at_once(desk, queue) < 7 << 20
    last = [letter.id async for letter in desk.dead(queue).matching()][-1]
    await desk.bury(queue, records.encode(b"small"), "injured")
    known = await desk.domain.link.call("HGET", queue.keys[1], "heavy_dead")
    assert last < known.decode() == [letter.id async for letter in desk.dead(queue).matching()][-1]
    assert await _most_at_once(desk, queue) < 7 << 20


async def _most_at_once(desk: Desk, queue: Queue) -> int:
    return max([sum(letter.size for letter in step) async for step in desk.dead(queue).steps(Filter())])


async def test_attributes_count_towards_the_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that attributes count towards the bound, as they are sent whole."""
    queue = await desk.queue()
    record = records.encode(b"x", {"a": b"y" * 60_000})
    for _ in range(PAGE):
        await desk.bury(queue, record, "refused")
    sizes: list[int] = []
    function = Link.function

    async def seen(link: Link, name: str, *args: Any, **named: Any) -> Any:
        answer = await function(link, name, *args, **named)
        if name == "dead":
            sizes.append(sum(len(value) for fields in answer[4::3] for value in fields))
        return answer

    monkeypatch.setattr(Link, "function", seen)
    assert len([letter async for letter in desk.dead(queue).matching(octets=16)]) == PAGE
    assert max(sizes) < (4 << 20) + 2 * len(record)


async def test_redrive_step_is_bounded_by_octets(desk: Desk) -> None:
    """Check that the next call moves the rest, without gaps."""
    queue = await desk.queue()
    for number in range(5):
        await desk.bury(queue, records.encode(bytes([number]) * (3 << 20)), "injured")
    letters = desk.dead(queue)
    ids = ["1-1", *[d.id async for d in letters.matching(octets=0)]]
    steps = []
    while ids:
        result = await letters.redrive(ids)
        steps.append((result.moved, result.missing))
        ids = ids[result.moved + result.missing :]
    assert steps == [(2, 1), (2, 0), (1, 0)]
    assert await desk.count(queue) == 5
    assert await letters.count() == 0
