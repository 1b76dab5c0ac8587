"""Serialize attempts that ask the same machines for the same key: an answer could be for either (rqp_cast.md 4.4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class _Turn:
    machines: frozenset[str]
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class KeyLocks:
    """A fair lock for each key. Attempts that ask different machines run side by side."""

    def __init__(self) -> None:
        self._turns: dict[int, list[_Turn]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, key: int, machines: frozenset[str]) -> AsyncIterator[None]:
        """Wait for earlier attempts that overlap. machines: all names and addresses that are asked."""
        mine, turns = _Turn(machines), self._turns.setdefault(key, [])
        turns.append(mine)
        try:
            while any(not turn.machines.isdisjoint(machines) for turn in turns[: turns.index(mine)]):
                mine.changed.clear()
                await mine.changed.wait()
            yield
        finally:
            turns.remove(mine)
            for turn in turns:
                turn.changed.set()
            if not turns:
                del self._turns[key]
