"""Redrive many dead letters in steps, with a rate limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from services.store.deadletters.dead_letters import PAGE, DeadLetters, RedriveResult
from services.store.model.dead_letter import Filter
from services.store.model.queues import Queue

STEPS_PER_S = 4  # with a rate limit; a step has at least one message


class Pace:
    """A rate limit in messages per second."""

    def __init__(self, rate: int = 0) -> None:
        """rate: 0 = unlimited."""
        self._rate = rate
        self.step = min(PAGE, max(1, rate // STEPS_PER_S)) if rate else PAGE
        self._next = 0.0

    async def wait(self, number: int) -> None:
        """Wait until `number` more messages are within the limit."""
        if not self._rate:
            return
        loop = asyncio.get_running_loop()
        due = max(self._next, loop.time())
        self._next = due + number / self._rate
        await asyncio.sleep(due - loop.time())


async def redrive_steps(
    letters: DeadLetters, wanted: Filter, goal: Queue, pace: Pace, run: str = ""
) -> AsyncIterator[RedriveResult]:
    """Yield the result of each step until no matching dead letter is left, or a step was stopped.

    run: see `DeadLetters.redrive`. Raises StoreError; call again to continue with the rest.
    """
    async for page in letters.pages(wanted, pace.step):
        while page:  # one step may move only a part of it
            await pace.wait(len(page))
            done = await letters.redrive(page, goal, run)
            yield done
            if done.stopped is not None:
                return
            page = page[done.moved + done.missing :]
