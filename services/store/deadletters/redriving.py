"""Bringing many dead letters back a step at a time, no faster than was said: the command line, the console, the
operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from services.store.deadletters.dead_letters import PAGE, DeadLetters, RedriveResult
from services.store.model.dead_letter import Filter
from services.store.model.queues import Queue

STEPS_PER_S = 4  # with a bound, steps of a quarter of a second, of one message at least


class Pace:
    """No more than so many a second."""

    def __init__(self, rate: int = 0) -> None:
        """rate: 0 = as fast as it goes."""
        self._rate = rate
        self.step = min(PAGE, max(1, rate // STEPS_PER_S)) if rate else PAGE
        self._next = 0.0

    async def wait(self, number: int) -> None:
        """Until so many more may go."""
        if not self._rate:
            return
        loop = asyncio.get_running_loop()
        due = max(self._next, loop.time())
        self._next = due + number / self._rate
        await asyncio.sleep(due - loop.time())


async def redrive_steps(
    letters: DeadLetters, wanted: Filter, goal: Queue, pace: Pace, run: str = ""
) -> AsyncIterator[RedriveResult]:
    """What each step did, until none is left that is meant, or one says why it cannot go on: that is the last.

    run: see `DeadLetters.redrive`. Raises StoreError: whoever begins anew goes on with what is left.
    """
    async for page in letters.pages(wanted, pace.step):
        while page:  # at once only as many as the store likes to move in one step
            await pace.wait(len(page))
            done = await letters.redrive(page, goal, run)
            yield done
            if done.stopped is not None:
                return
            page = page[done.moved + done.missing :]
