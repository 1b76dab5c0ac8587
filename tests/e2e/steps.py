"""Measure the duration of steps, for a report at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_taken: list[tuple[str, float]] = []


@contextmanager
def step(name: str) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
    finally:
        _taken.append((name, time.monotonic() - begin))


def lines() -> list[str]:
    """Return one line per step, in the order in which they ended."""
    return [f"{seconds:7.1f} s  {name}" for name, seconds in _taken]
