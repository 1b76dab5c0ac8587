"""A wait that was in vain says what was seen last (tests/servers.py)."""

from __future__ import annotations

import pytest

from tests.servers import eventually


def test_what_was_seen_last_is_told() -> None:
    seen = iter(range(1000))
    with pytest.raises(AssertionError, match=r"it never came true: 1$"):
        eventually(lambda: min(next(seen), 1), 0.05, until=lambda number: number > 1)


def test_what_was_raised_last_is_told() -> None:
    def refused() -> None:
        raise ConnectionRefusedError("nobody listens")

    with pytest.raises(AssertionError, match="it never came true: nobody listens"):
        eventually(refused, 0.05)


def test_what_was_true_is_returned() -> None:
    seen = iter(range(1000))
    assert eventually(lambda: next(seen), until=lambda number: number > 5) == 6
