"""Cost of a match in steps (pubsub.md 2): it grows with the number of matches, not of subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from services.pubsub.router import Router

ALPHABET = b"abcdefghij"


class Counted(bytes):
    """A tag that counts how often it is hashed, compared or indexed."""

    accesses = 0

    def __hash__(self) -> int:
        self.accesses += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        self.accesses += 1
        return super().__eq__(other)

    def __getitem__(self, at: Any) -> Any:
        self.accesses += 1
        return super().__getitem__(at)

    def startswith(self, *arguments: Any) -> bool:
        self.accesses += 1
        return super().startswith(*arguments)


def match_cost(router: Router[int], tag: bytes) -> tuple[int, int]:
    """Return how often a match uses the tag, and how many items it finds."""
    counted = Counted(tag)
    found = len(router.match(counted))
    return counted.accesses, found


def others(number: int) -> list[bytes]:
    """Return tags of six letters, spread evenly, none of which begins with z."""
    return [bytes(ALPHABET[n * 7919 // 10**digit % 10] for digit in range(6)) for n in range(number)]


@pytest.mark.parametrize("is_prefix", [False, True])
def test_a_match_costs_no_more_among_very_many_that_do_not(is_prefix: bool) -> None:
    """Check that a match costs no more among very many that do not match, with a common prefix or without."""
    few, many = Router[int](), Router[int]()
    for router, number in ((few, 10), (many, 20_000)):
        for tag in others(number):
            router.add(tag, is_prefix, 0)
        router.add(b"zz", is_prefix, 1)
    assert match_cost(few, b"zz") == match_cost(many, b"zz")
    steps, found = match_cost(many, others(1)[0])
    assert found == 1
    assert steps <= 2 * (len(others(1)[0]) + 2)


def test_a_match_costs_as_much_as_it_finds() -> None:
    """Check that a match takes one step for each matching pattern, for any number of subscribers."""
    router: Router[int] = Router()
    for tag in others(10_000):
        router.add(tag, True, 0)
    cost = []
    for depth in (1, 10, 100):
        for length in range(1, depth + 1):
            router.add(b"z" * length, True, length)
        cost.append(match_cost(router, b"z" * depth + b"y"))
    for (steps, found), depth in zip(cost, (1, 10, 100), strict=True):
        assert found >= depth
        assert steps <= 2 * depth + 4
    for item in range(10_000):
        router.add(b"z", True, item)
    assert match_cost(router, b"z" * 100 + b"y") == (cost[-1][0], cost[-1][1] + 10_000)
