"""Attempts that must not be made at once wait for one another: an answer could be for either (rqp_cast.md 4.4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class _Turn:
    machines: frozenset[str]
    came: asyncio.Event = field(default_factory=asyncio.Event)


class KeyLocks:
    """By key, in the order in which they came. Those that ask different machines go side by side."""

    def __init__(self) -> None:
        self._turns: dict[int, list[_Turn]] = {}

    @contextlib.asynccontextmanager
    async def turn(self, key: int, machines: frozenset[str]) -> AsyncIterator[None]:
        """machines: all names and addresses of those that are asked."""
        mine, turns = _Turn(machines), self._turns.setdefault(key, [])
        turns.append(mine)
        try:
            while not _is_next(mine, turns):
                mine.came.clear()
                await mine.came.wait()
            yield
        finally:
            turns.remove(mine)
            for turn in turns:
                turn.came.set()
            if not turns:
                del self._turns[key]


def _is_next(mine: _Turn, turns: list[_Turn]) -> bool:
    before = turns[: turns.index(mine)]
    return all(turn.machines.isdisjoint(mine.machines) for turn in before)
