"""Attempts for one key and machine wait for each other (rqp_cast.md 4.4)."""

from __future__ import annotations

import asyncio

from services.rqp.cast.sending.key_locks import KeyLocks
from tests.live import until


class Attempts:
    def __init__(self) -> None:
        self.locks = KeyLocks()
        self.under_way: dict[str, asyncio.Event] = {}  # attempts whose turn has come; set: they end

    async def begin(self, name: str, *machines: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._attempt(name, frozenset(machines)))
        await asyncio.sleep(0)
        return task

    async def _attempt(self, name: str, machines: frozenset[str]) -> None:
        async with self.locks.hold(7, machines):
            self.under_way[name] = asyncio.Event()
            await self.under_way[name].wait()


async def test_all_unblocked_attempts_proceed() -> None:
    """Check that all unblocked attempts proceed, not only the next: the others ask other machines."""
    attempts = Attempts()
    tasks = [
        await attempts.begin("both", "10.0.0.1", "10.0.0.2"),
        await attempts.begin("one", "10.0.0.1"),
        await attempts.begin("the other", "10.0.0.2"),
        await attempts.begin("behind one", "10.0.0.1"),
    ]
    assert list(attempts.under_way) == ["both"]
    attempts.under_way["both"].set()
    await until(lambda: list(attempts.under_way) == ["both", "one", "the other"])
    attempts.under_way["one"].set()
    await until(lambda: "behind one" in attempts.under_way)
    assert not tasks[2].done()
    for ends in attempts.under_way.values():
        ends.set()
    await asyncio.gather(*tasks)
