"""Test patterns on bodies, and that searches do not block other requests."""

from __future__ import annotations

import asyncio
import random
from urllib.parse import quote

import pytest

from services.console.contract.problems import Problem
from services.console.queries.patterns import MAX_REPEATS, MAX_STEPS, parse_pattern
from tests.console.live_console import LiveConsole

DEAD = "/queues/orders/dead"
DEAREST = "(.{0,9}x.{0,9}){9}q"  # the slowest accepted pattern: a MiB of the body below takes seconds
BODY = bytes(random.Random(1).choices(b"abcdefghx", k=500_000))


def test_large_patterns_are_rejected() -> None:
    for text in [
        ".{0,999}x" * 110,
        "[^x]{0,900}z" * 80,
        f"a{{{MAX_REPEATS + 1}}}",
        f"a{{{MAX_REPEATS + 1},}}",
        "((((a{0,10}){0,10}){0,10})b)" * 35,
        "((a{0,20}){0,20})" * 10,  # few repeats, and many steps
        "abcdefghij" * (MAX_STEPS // 10),
        "(?:a|.b){0,200}",
    ]:
        with pytest.raises(Problem) as caught:
            parse_pattern(text)
        assert (caught.value.status, caught.value.label) == (400, "bad_pattern")


def test_common_patterns_are_accepted() -> None:
    for text in [
        r'"id":\s*"[0-9a-f]{32}".*timeout',
        r"(?i)[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,24}",
        "customer.{0,100}refused",
        "(?i)" + "|".join(f"customer {number}" for number in range(50)),
        "[0-9a-f]{200}",
        DEAREST,
    ]:
        assert parse_pattern(text).search(b"nothing of it") is None


async def test_search_does_not_block_other_requests(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    await console.bury(queue, BODY)
    search = asyncio.ensure_future(console.get(f"{DEAD}?body={quote(DEAREST)}"))
    answered = 0
    while not search.done():
        await console.found("/queues")
        await console.found(f"{DEAD}?octets=0")
        assert (await console.get("/queues/orders/messages?octets=100000&limit=1000")).status == 200
        answered += 1
    assert answered >= 3  # on the loop, it would have been one
    assert (await search).items == []


async def test_page_ends_between_two_dead_letters(console: LiveConsole) -> None:
    """Check that a page ends between two dead letters, and not only after a step of up to a hundred."""
    queue = await console.declare("orders")
    await console.bury(queue, BODY[:50_000], BODY[:50_000])
    first = await console.found(f"{DEAD}?body={quote(DEAREST)}")
    assert first["items"] == []
    assert first["next"]
    second = await console.found(f"{DEAD}?body={quote(DEAREST)}&cursor={first['next']}")
    assert second == {"items": [], "next": None}
